"""Predictions: what Kubernetes, Kueue and the operator would do with a job after its admission.

Each module follows the source of the real component and names that source. `tests/conformance` compares the results of
both. All modules are pure: facts about the cluster come from the context, and an unknown fact counts in the job's
favour. The caller decides if a prediction denies the job, becomes a warning or is ignored.
"""
