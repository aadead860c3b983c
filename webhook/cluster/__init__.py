"""What may be asked of a cluster, and how the answers are kept.

`view` is the question; the answer is a record, `ABSENT` or `UNKNOWN`. `resource` says what is kept of one kind of
object, `resources/` has a file for each kind, `contents` holds the records, `snapshot` fills a view from
files, and `without_jobs` is a view for the verdict on jobs that run already.
Nothing here talks to an API server (that is `webhook.client`), and nothing decides: the meaning of a record for a job
belongs to `webhook.predict` and the rules.
"""
