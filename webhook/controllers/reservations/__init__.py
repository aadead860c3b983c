"""Quota verdicts that all replicas share: the use of an admitted job is reserved until every replica sees the job.

`webhook.predict.quota` computes the use of a job, and whether the job fits into the quotas.
"""
