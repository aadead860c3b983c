"""What Kubernetes' CEL offers besides CEL itself, as Python functions: a file for each of its libraries.

Messages begin like those of the API server where a value cannot be read. What it has and this has not is refused when a
policy is applied, by its name: `format`, two-variable macros, `authorizer`.
"""
