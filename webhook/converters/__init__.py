"""The common code of the converters to `kubeflow.org/v2beta1`; each converter is an optional part.

A `report` lists what was moved, changed in meaning or lost, and what the user still has to do. `fields` reads a job
field by field, `stored_jobs` leaves out what a new job does not have, and `secret_names` finds what looks like a
secret. Pure: no files, no network, no clock.
"""
