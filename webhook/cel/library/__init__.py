"""Kubernetes' extensions of CEL as Python functions, a module per library.

Messages about invalid values begin like the API server's. A policy that uses other functions of Kubernetes, a
two-variable macro or `authorizer` is rejected.
"""
