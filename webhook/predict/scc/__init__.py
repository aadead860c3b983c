"""OpenShift's Security Context Constraints (SCC).

This package predicts the SCC that the pods of a job get, and the values that this SCC sets. `tests/unit/predict/scc`
compares this package with results of OpenShift's code.
"""
