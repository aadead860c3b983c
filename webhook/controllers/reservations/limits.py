"""The limits of the quota ledger."""

from typing import Final

LIFETIME_SECONDS: Final = 20.0
"""Lifetime of a reservation, after which every replica sees the job or the job was never stored.

The reply may be sent 8 seconds after the reservation, and storing the job takes seconds. The watch may lag by
`MAX_SILENCE_SECONDS`. The replicas' estimates of the API server's clock differ by up to 4 seconds.
"""
MAX_SILENCE_SECONDS: Final = 5.0
"""After this silence the watch on jobs may have stalled, so the jobs of the namespace are listed."""
MAX_LISTED_JOBS: Final = 1000
"""Jobs in a namespace. A list of more jobs takes too long for a review, so the cached jobs are used."""
MAX_JOBS_PER_WRITE: Final = 100
"""Jobs judged in one round."""
MAX_JUDGING_SECONDS: Final = 0.02
"""Time from the first reservation of a round to the round's write. If another replica writes first, the round fails."""
MAX_PAUSE_SECONDS: Final = 0.1
"""Random pause between two rounds, in which other replicas can write."""
PODS_COUNTED_SECONDS: Final = 0.1
"""Time from when a quota counts a pod until a list contains the pod."""
PODS_MOVE_SECONDS: Final = 5.0
"""Time after a change of a pod or a quota. More changes are likely within this time."""
MAX_REJECTIONS: Final = 10
"""Rejections of a job in a row while pods change. The last rejection is final."""
SWEEP_SECONDS: Final = 5.0
"""Time between two removals of Leases without a valid reservation."""
