"""Turns a review, a policy and a cluster view into a decision.

`mutate.pipeline` injects values, and `validate.pipeline` finds violations. `skipping`, `too_large` and `too_expensive`
decide about objects that the rules do not judge. `what_if` judges stored jobs, and `policy_review` judges a changed
policy.

The package reads neither the clock nor the network, so the server, the commands and the tests reach the same verdict.
"""
