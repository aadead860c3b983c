"""Reads and writes objects of the API server, over the connections of the official client.

`calls` sends single requests, `watch` follows the objects of one kind, `live_view` is the ClusterView of all watches,
and `reading` reads a whole cluster once.
"""
