"""Limits for predictions: the number of candidates that are tried, and of items in a message."""

from typing import Final

MAX_FAULTS_PER_JOB: Final = 100
"""Faults of the pod templates."""
MAX_MOUNT_SUGGESTIONS: Final = 5
MAX_TEMPLATE_ANNOTATIONS_BYTES: Final = 256 * 1024
"""The API server's limit for all annotations of an object."""
MAX_GPUS_PER_NODE_TRIED: Final = 1024
MAX_WORKERS_TRIED: Final = 2**31 - 1
MAX_SHOWN_RDMA_DEVICES: Final = 3
MAX_CACHED_DEFAULTS: Final = 64
"""Namespace defaults for which the quota use of a pod is cached."""
MAX_OTHER_QUOTAS: Final = 5
"""Additional quotas named in a message."""
MAX_TOPOLOGIES_TRIED: Final = 4
MAX_SHOWN_LOCAL_QUEUES: Final = 3
