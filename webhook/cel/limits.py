"""Limits for custom rules."""

from typing import Final

MAX_JOB_BYTES: Final = 256 * 1024
"""Bytes of a job. The time of text functions grows with the length of the text."""
MAX_JOB_VALUES: Final = 1_000
"""Items of all lists and mappings of a job. The time and memory of the engine's `map` and `filter` are quadratic in
this number: 2.3 s and 1.6 GB for 9,000.
"""
MAX_TRIAL_SECONDS: Final = 0.05
"""Processor time for one expression on the largest job. A review has to wait for the expression."""
MAX_TRIAL_BYTES: Final = 64 * 2**20
"""Memory for one expression on the largest job. The container has little more memory than the service needs."""
TRIAL_KILLED_SECONDS: Final = 0.5
"""Processor time after which the trial of one expression is killed."""
MAX_REVIEW_SECONDS: Final = 0.1
"""Processor time for one rule and one job: twice MAX_TRIAL_SECONDS, because times vary on a busy machine."""
