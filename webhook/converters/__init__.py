"""What makes MPIJobs of `kubeflow.org/v2beta1` of other jobs has in common; optional parts have a converter each.

Whatever is moved, changed in meaning or lost, and what is left for the user to do, goes into a `report`; `secret_names`
finds what looks like a secret. Pure: no files, no network, no clock.
"""
