"""The pipelines: from a review, a policy and a cluster view to a decision.

`pipelines` mutates and validates, `decision` is the outcome and the reply, `messages` the words around it. Before the
rules run `left_alone` and `too_large`, after them `excuse`. For injections there are `opt_out`, `required`, and
`restore` for updates. `policy_review` reviews a policy, `replay` judges existing jobs under a new policy. Everything is
pure: no clock and no network, so server, commands and tests come to the same verdict. The rules decide what is wrong
with a job, never this package.
"""
