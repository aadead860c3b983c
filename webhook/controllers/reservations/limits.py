"""The limits of the quota ledger: times in seconds, and counts."""

from typing import Final

LIFETIME_SECONDS: Final = 20.0
"""How long a reservation is valid. By then every replica sees the job, or the job was never stored: an answer may come
8 seconds after the reservation was made, storing the job takes seconds, the watch may lag by `MAX_SILENCE_SECONDS`, and
the replicas' estimates of the API server's clock differ by up to 4 seconds.
"""
MAX_SILENCE_SECONDS: Final = 5.0
"""A watch on jobs that is silent for longer may have stalled: the jobs of the namespace are then listed."""
MAX_LISTED_JOBS: Final = 1000
"""In one namespace. Listing more takes too long for a review, which then uses the cache."""
MAX_JOBS_PER_WRITE: Final = 100
"""Limits the objects that are made in one round."""
MAX_JUDGING_SECONDS: Final = 0.02
"""After the first reservation of a round. If another replica writes first, the round is void."""
MAX_PAUSE_SECONDS: Final = 0.1
"""Between two rounds, at random. The other replicas get their turn."""
PODS_COUNTED_SECONDS: Final = 0.1
"""From a quota counting a pod to a list having it."""
PODS_MOVE_SECONDS: Final = 5.0
"""More changes are likely within this time after a change of a pod or a quota."""
MAX_REJECTIONS: Final = 10
"""For one job while pods change. The last one is final, so that the user gets an answer."""
SWEEP_SECONDS: Final = 5.0
"""Interval between sweeps of Leases without a valid reservation."""
