"""Quotas shared by all replicas: the use of an admitted job is reserved until every replica sees the job.

`webhook.predict.quota` computes the use of a job and whether it fits.
"""
