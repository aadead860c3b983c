"""Kubernetes' extensions of CEL as Python functions: a file for each library.

Messages about unreadable values begin like those of the API server. The missing parts are rejected by name when a
policy is applied: `format`, two-variable macros, `authorizer`.
"""
