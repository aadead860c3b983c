"""Controllers that create, complete, delete or report objects of a job: SSH keys, reservations, and a base class.

`ssh/` and `reservations/` also work during reviews: a Secret gets its keys, and no two jobs get the same quota.
`reconciler` is the base class for controllers in the background, most of which are in optional parts. Controllers may
call the API server. `webhook.admission` decides about jobs, and `webhook.client` reads the cluster.
"""
