"""The limits of the quota ledger: times in seconds, and counts."""

from typing import Final

LIFETIME_SECONDS: Final = 20.0
"""How long a reservation counts. By then every replica sees the job, or the job was never stored: an answer may come 8
seconds after the reservation was made, storing the job takes seconds, the watch may lag by `MAX_SILENCE_SECONDS`, and
what the replicas know of the API server's clock differs by up to 4 seconds."""
MAX_SILENCE_SECONDS: Final = 5.0
"""A watch on jobs that is silent for longer may have stalled: the jobs of the namespace are then listed."""
MAX_LISTED_JOBS: Final = 1000
"""Of a namespace. Listing more takes too long for a review: then the cache counts."""
MAX_JOBS_PER_WRITE: Final = 100
"""Limits the objects that are made in one round."""
MAX_JUDGING_SECONDS: Final = 0.02
"""After the first reservation of a round: a write of another replica before the own one makes the round void."""
MAX_PAUSE_SECONDS: Final = 0.1
"""Between two rounds, at random. The other replicas get their turn."""
PODS_COUNTED_SECONDS: Final = 0.1
"""Until a pod that a quota counts is in a list of pods."""
PODS_MOVE_SECONDS: Final = 5.0
"""More changes are likely within this time after a change of a pod or a quota."""
MAX_REJECTIONS: Final = 10
"""Of one job while pods come and go. The last one is final, so that the user gets an answer."""
SWEEP_SECONDS: Final = 5.0
"""Between two looks for Leases without a reservation that counts."""
