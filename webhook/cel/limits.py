"""The limits on custom rules, and what each protects."""

from typing import Final

MAX_JOB_BYTES: Final = 256 * 1024
"""Bytes of a job that custom rules judge: the time of text functions grows with the length."""
MAX_JOB_VALUES: Final = 1_000
"""Items of all lists and mappings of a job that custom rules judge. The engine's `map` and `filter` take time and
memory quadratic in that number: 2.3 s and 1.6 GB for 9,000.
"""
MAX_TRIAL_SECONDS: Final = 0.05
"""Processor time for one expression on the largest job: reviews wait for it, and nothing interrupts it."""
MAX_TRIAL_BYTES: Final = 64 * 2**20
"""Memory for one expression on the largest job: the container has little more than the service needs."""
TRIAL_KILLED_SECONDS: Final = 0.5
"""Processor time after which the trial of one expression is killed."""
MAX_REVIEW_SECONDS: Final = 0.1
"""Processor time for one rule and one job: twice that of the trial, since times vary on a busy machine."""
