"""The pipelines: from a review, a policy and a cluster view to a decision.

`pipelines` mutates and validates, `decision` is the outcome and the reply, `messages` the words around it. Before the
rules: `left_alone` and `too_large`; after them: `excuse`. Of injections: `opt_out`, `restore` for updates, and
`required`. `policy_review` is the review of a policy, `replay` the same for jobs that exist.
Pure: no clock and no network, so server, commands and tests come to the same verdict. What is wrong with a job is found
by the rules, never here.
"""
