"""What is wrong with an installation, and what to do about it.

`gather` reads a cluster once, as `facts`; each file in `checks/` turns facts into diagnoses, without asking the cluster
again. `rights` and `certificates` are the parts of that reading with rules of their own.
Nothing is changed on the cluster; how diagnoses are printed belongs to `webhook.cli`.
"""
