"""The expressions of custom rules, in CEL.

Evaluation is synchronous, and nothing can interrupt it. So `trial` rejects a policy whose expressions are too
expensive, and `evaluation` judges no job larger than those of the trial.
"""
