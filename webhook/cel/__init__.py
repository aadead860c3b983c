"""Custom rules' expressions in CEL.

Evaluation is synchronous and cannot be interrupted. So `trial` rejects a policy with expressions that are too
expensive, and `evaluation` rejects jobs that are larger than the jobs of the trial.
"""
