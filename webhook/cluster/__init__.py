"""Queries of the cluster, and the records that answer them.

`view` is the interface for queries; the answer is a record, `ABSENT` or `UNKNOWN`. `resource` declares the record of a
kind of object, `resources/` has a file for each kind, `contents` stores the records, `snapshot` fills a view from
files, and `without_jobs` is a view for the verdict on running jobs. No module here calls an API server (see
`webhook.client`) or decides: the meaning of a record for a job belongs to `webhook.predict` and the rules.
"""
