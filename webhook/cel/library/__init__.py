"""Kubernetes' extensions of CEL as Python functions, a module per library.

Messages about invalid values begin like the API server's. `format`, two-variable macros and `authorizer` are missing;
a policy that uses them is rejected.
"""
