"""Installs the service on a cluster, and checks an installation. Nothing here runs during a review.

`registration` has the webhook configurations, `certificate_store` stores the CA, and `doctor` finds problems.
"""
