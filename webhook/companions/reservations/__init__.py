"""Quotas that all replicas share: what an admitted job will take is reserved until every replica sees the job.

`ledger` judges jobs and reserves what they take, `leases` reads and writes the Leases, `current_entries` knows which
reservations count, `limits` has the limits. `webhook.predict.quota` computes what a job takes and whether it fits.
"""
