"""Queries of the cluster, and the records that answer them.

`view` has the interface for queries, and `resources/` has a file for each kind of object. This package sends no
requests to the API server; `webhook.client` does.
"""
