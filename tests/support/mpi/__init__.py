"""Real MPI without a cluster: releases from packages, and pods as namespaces of this machine.

This package has no tests, and calls no API server: the operator's objects are passed in as manifests.
"""
