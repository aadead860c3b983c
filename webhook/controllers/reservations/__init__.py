"""Quotas that all replicas share: what an admitted job will use is reserved until every replica sees the job.

`ledger` judges jobs, reserves what they use, selects the valid reservations, and reads and writes the Leases; `limits`
has the limits. `webhook.predict.quota` computes what a job uses and whether it fits.
"""
