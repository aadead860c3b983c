"""Quotas that all replicas share: what an admitted job will take is reserved until every replica sees the job.

`ledger` judges jobs and reserves for them, `leases` reads and writes the Leases that hold the reservations.
What a job takes and whether a quota has room for it is computed in `webhook.predict.quota`.
"""
