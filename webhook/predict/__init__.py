"""Predictions: what Kubernetes, Kueue and the operator would do with a job after its admission.

Each module follows the source code of the real component and names the source file. `tests/conformance` compares the
predictions with the results of the real components. All modules are pure: facts about the cluster come from the
context. An unknown fact counts in the job's favour. The caller decides if a prediction denies the job, becomes a
warning or is ignored.
"""
