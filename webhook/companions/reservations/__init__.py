"""Quotas that all replicas share: what an admitted job will take is reserved until every replica sees the job.

`ledger` judges jobs, reserves what they take, knows which reservations count, and reads and writes the Leases;
`limits` has the limits. `webhook.predict.quota` computes what a job takes and whether it fits.
"""
