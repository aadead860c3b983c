"""Talks to the API server over the connections of the official client.

`calls` are single calls, `objects` and `paging` read objects and lists with them, `access_reviews` queries rights.
`watch` keeps a `store` up to date over a `connection` whose bytes `wire` decodes. `live_view` makes a ClusterView of
these, and `reading` reads a whole cluster once. `webhook.cluster.resources` decides which kinds are read; the packages
above decide what they mean for a job.
"""
