"""Queries of the cluster, and the records that answer them.

`view` is the interface for queries; an answer is a record, `ABSENT` or `UNKNOWN`. `resource` declares the record of a
kind of object, and `resources/` has a file for each kind. `contents` stores the records, `snapshot` fills a view from
files, and `without_jobs` is a view for verdicts on running jobs. This package calls no API server (`webhook.client`
does) and makes no decisions (`webhook.predict` and the rules do).
"""
