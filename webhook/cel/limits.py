"""The limits on custom rules, and what each protects."""

from typing import Final

MAX_JOB_BYTES: Final = 256 * 1024
"""Of a job that custom rules judge: the time of functions on texts grows with their length."""
MAX_JOB_VALUES: Final = 1_000
"""Of a job that custom rules judge, the items of all its lists and mappings: the engine's `map` and `filter` take the
square of their number, 2.3 s and 1.6 GB for 9,000."""
MAX_TRIAL_SECONDS: Final = 0.05
"""Of processor time, for one expression on the largest job: reviews wait for it, and nothing interrupts it."""
MAX_TRIAL_BYTES: Final = 64 * 2**20
"""Of memory, for one expression on the largest job: the container has little more than the service needs."""
TRIAL_KILLED_SECONDS: Final = 0.5
"""Of processor time until the trial of one expression is ended from outside."""
MAX_REVIEW_SECONDS: Final = 0.1
"""Of processor time, for one rule and one job: twice that of the trial, as times differ so much on a busy machine."""
