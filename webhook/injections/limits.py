"""Limits on the input of injections."""

from typing import Final

MAX_NETWORKS_CHARACTERS: Final = 4096
"""Characters of the annotation `training.openshift.io/networks`."""
MAX_GPU_PRODUCTS: Final = 16
"""GPU products in the annotation of a job. Each becomes a value of a node affinity."""
MAX_RDMA_DEVICES: Final = 64
"""RDMA devices that a policy may set for one pod."""
