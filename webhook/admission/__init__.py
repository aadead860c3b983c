"""Turns a review, a policy and a cluster view into a decision.

`pipelines` chooses the pipeline: `mutate.pipeline` injects, `validate.pipeline` finds violations, and each has its
steps in one function. `decision` is the outcome and the reply, `messages` the words in it. `skipping`, `too_large` and
`too_expensive` say which objects no pipeline judges. `what_if` judges stored jobs, `policy_review` a changed policy.
Pure: no clock and no network, so server, commands and tests come to the same verdict.
"""
