"""Installs the service on a cluster, and checks an installation. Nothing here runs during a review."""
