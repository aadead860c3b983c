"""Quotas shared by all replicas: the use of an admitted job is reserved until every replica sees the job.

`ledger` judges jobs, reserves their use, selects the valid reservations, and reads and writes the Leases that hold the
reservations. `limits` has the limits. `webhook.predict.quota` computes the use of a job and whether it fits.
"""
