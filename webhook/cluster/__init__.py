"""Queries of the cluster, and the records that answer them.

`view` is the interface for queries; the answer is a record, `ABSENT` or `UNKNOWN`. `resource` declares what is kept of
one kind of object, `resources/` has a file for each kind, `contents` holds the records, `snapshot` fills a view from
files, and `without_jobs` is a view for the verdict on running jobs. Nothing here calls an API server (that is
`webhook.client`), and nothing decides: the meaning of a record for a job belongs to `webhook.predict` and the rules.
"""
