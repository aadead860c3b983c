"""Finds problems of an installation, and suggests fixes. It changes nothing on the cluster.

`gather` reads a cluster once, and returns `facts`. The `checks` turn facts into diagnoses.
"""
