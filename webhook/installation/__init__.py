"""Installation of the service on a cluster, and checks of that installation.

`registration` has the webhook configurations, `components` the rights of optional controllers, `certificate_store` is
where `certs` keeps its state, and `doctor/` finds problems. `tools/manifests.py` generates files from these.
Nothing here runs for a review or depends on the running service: `webhook.server` uses this package.
"""
