"""Custom rules' expressions in CEL.

An evaluation cannot be interrupted. Therefore `trial` rejects a policy with expensive expressions, and `evaluation`
rejects jobs that are larger than the jobs of the trial.
"""
