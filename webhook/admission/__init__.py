"""The pipelines: from a review, a policy and a cluster view to a decision.

`pipelines` mutates and validates, `decision` is the outcome and the reply, `messages` the words around it, and `excuse`
says what is excused. `opt_out` says which injections a job goes without, `record` restores what an update lost, and
`required` finds what had to be injected and is missing. `policy_review` is the review of a policy itself, and `replay`
the same for jobs that exist already.
Pure: no clock and no network. So the server, the commands and the tests come to the same verdict. What is wrong with a
job is found by the rules, never here.
"""
