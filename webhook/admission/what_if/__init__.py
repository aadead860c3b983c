"""Verdicts on stored jobs.

`resubmitted` judges a job as if its owner submitted it again now. `replay` judges all jobs under the current and under
changed policies, and counts the differences.
"""
