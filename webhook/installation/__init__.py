"""Installs the service on a cluster, and checks an installation.

`registration` has the webhook configurations, `components` has the rights of optional controllers, and
`certificate_store` stores the state of `certs`. `doctor/` finds problems. `tools/manifests.py` generates manifests from
this package. Nothing here runs during a review.
"""
