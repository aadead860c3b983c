"""OpenShift's Security Context Constraints (SCC): the SCC that the pods of a job get, and the values that it sets.

`tests/unit/predict/scc` compares this package with results of OpenShift's code.
"""
