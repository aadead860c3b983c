"""Kubernetes' extensions of CEL as Python functions, a module per library.

Messages about invalid values begin like the API server's. A policy that uses `format`, two-variable macros or
`authorizer` is rejected, because they are missing.
"""
