"""The common code of the converters to `kubeflow.org/v2beta1`. Each converter is an optional part.

`fields` reads a job field by field. `report` collects notes about the fields. `stored_jobs` removes the fields that a
new job does not have, and `secret_names` finds names that sound like a secret. Nothing here reads files or the network.
"""
