"""Limits for predictions: the number of candidates that are tried, and of items in a message."""

from typing import Final

MAX_FAULTS_PER_JOB: Final = 100
"""Reported faults of the pod templates of a job."""
MAX_MOUNT_SUGGESTIONS: Final = 5
"""Volume names that a review suggests."""
MAX_TEMPLATE_ANNOTATIONS_BYTES: Final = 256 * 1024
"""Bytes of all annotations of a template. The API server accepts no more."""
MAX_GPUS_PER_NODE_TRIED: Final = 1024
"""The highest number of GPUs per node that is tried for a suggestion."""
MAX_WORKERS_TRIED: Final = 2**31 - 1
"""The highest number of workers that is tried for a suggestion."""
MAX_SHOWN_RDMA_DEVICES: Final = 3
"""RDMA resources named in a message."""
MAX_CACHED_DEFAULTS: Final = 64
"""The number of different namespace defaults for which the quota use of a pod is cached."""
MAX_OTHER_QUOTAS: Final = 5
"""Additional quotas named in a message."""
MAX_TOPOLOGIES_TRIED: Final = 4
"""Topology requests tried for a job."""
MAX_SHOWN_LOCAL_QUEUES: Final = 3
"""LocalQueues named in a message."""
