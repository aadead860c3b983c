"""Real MPI without a cluster: MPI releases from packages, and pods as Linux namespaces of this machine.

This package has no tests and does not call an API server: callers pass the operator's objects as manifests.
"""
