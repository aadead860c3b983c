"""Reads and writes objects of the API server, over the connections of the official client.

`calls` sends single requests. `objects` and `paging` use them to read objects and lists, and `access_reviews` queries
rights. `watch` keeps the records of a `store` up to date. It uses a `connection`, and `wire` decodes the messages.
`live_view` is the ClusterView of all watches. `reading` reads a whole cluster once. `webhook.cluster.resources` defines
the kinds of objects that are read.
"""
