"""Controllers for objects that belong to jobs: SSH keys, reservations, and the base class of other controllers.

`ssh/` and `reservations/` also work during reviews: a Secret gets its keys, and no two jobs get the same quota.
`reconciler` is the base class for controllers in the background, most of which are in optional parts. Controllers may
call the API server. `webhook.admission` decides about jobs, and `webhook.client` reads the cluster.
"""
