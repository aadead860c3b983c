"""Why a job that exists does not run: read from what the cluster itself says of it, and nothing else.

`sight` is what was read of one job, `causes` has a file for each place where a job gets stuck, `state` says what has
become of it, and `diagnosis` puts the causes in order. What admission would say comes in as findings of the rules:
where the cluster and a rule speak of the same fault, the cluster says what is wrong and the rule where and what to do.
"""
