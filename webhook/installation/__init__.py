"""How the service gets onto a cluster, and how to tell whether it is in order there.

`registration` has the webhook configurations, `components` the rights of optional controllers, `certificate_store` is
where `certs` keeps its state, and `doctor/` finds what is wrong. `tools/manifests.py` generates files from these.
Nothing here runs for a review, and nothing depends on the running service: `webhook.server` uses this room.
"""
