"""OpenShift's Security Context Constraints (SCC): which SCC the pods of a job get, and which values it sets.

`constraints` sorts the SCCs of a cluster and adds a namespace's ranges, `matching` checks a pod template against one
SCC, `outcome` combines both for a job. `tests/unit/predict/scc` compares with results of OpenShift's code.
"""
