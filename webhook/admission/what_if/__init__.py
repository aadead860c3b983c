"""Verdicts on stored jobs.

`resubmitted` judges one as if its owner submitted it again now. `replay` does so for all jobs under the policies of
today and under changed ones, and counts the difference.
"""
