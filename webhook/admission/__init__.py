"""Turns a review, a policy and a cluster view into a decision.

`pipelines` chooses the pipeline: `mutate.pipeline` injects, and `validate.pipeline` finds violations. Each has its
steps in one function. `decision` is the outcome and the reply; `messages` has its texts. `skipping`, `too_large` and
`too_expensive` decide about objects that are not judged. `what_if` judges stored jobs, and `policy_review` judges a
changed policy. The package is pure: without clock and network, server, commands and tests reach the same verdict.
"""
