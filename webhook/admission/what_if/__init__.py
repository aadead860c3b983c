"""Verdicts on stored jobs.

`resubmitted` judges a job as if its owner submitted it again now. `replay` does so for all jobs under the current
policies and under changed ones, and `policy_review` reports the difference when an administrator applies a policy.
"""
