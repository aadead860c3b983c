"""Turns a review, a policy and a cluster view into a decision.

`pipelines` chooses the pipeline: `mutate.pipeline` injects, and `validate.pipeline` finds violations. Each pipeline is
one function with all its steps. `decision` is the outcome and the reply; `messages` has its texts. `skipping`,
`too_large` and `too_expensive` decide about objects that the rules do not judge. `what_if` judges stored jobs, and
`policy_review` judges a changed policy. The package reads neither the clock nor the network, so the server, the
commands and the tests reach the same verdict.
"""
