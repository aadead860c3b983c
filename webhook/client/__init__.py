"""Talks to the API server, over the connections of the official client.

`calls` are single calls, `objects` and `paging` read objects and lists with them, `access_reviews` asks about rights.
`watch` keeps a `store` up to date over a `connection` whose bytes `wire` decodes; `live_view` is all of that as a
ClusterView, and `reading` reads a whole cluster once.
Which kinds are read is decided in `webhook.cluster.resources`; what they mean for a job is decided above.
"""
