"""OpenShift's Security Context Constraints (SCC): which of them the pods of a job get, and with which values.

`constraints` sorts the SCCs of a cluster and gives them a namespace's ranges, `matching` judges a pod template under
one of them, `outcome` combines both for a job. `tests/unit/predict/scc` has verdicts of OpenShift's own code.
"""
