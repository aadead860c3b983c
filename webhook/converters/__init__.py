"""Common code of the converters to `kubeflow.org/v2beta1`, without access to files or the network.

Each converter is an optional part.
"""
