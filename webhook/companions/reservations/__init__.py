"""Quotas that all replicas share: what an admitted job will take is reserved until every replica sees the job.

`ledger` leads jobs from announcement to answer, `judging` finds their verdicts, `announcements` keeps what this
replica has written and heard, `sight` says what need not count any more, `leases` reads and writes the Leases.
What a job takes and whether a quota has room for it is computed in `webhook.predict.quota`.
"""
