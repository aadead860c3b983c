"""Real MPI without a cluster: releases from packages, and pods that are namespaces of this machine.

No test is here, and nothing that talks to an API server: what the operator made comes in as manifests.
"""
