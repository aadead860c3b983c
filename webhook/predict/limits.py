"""Limits of predictions: what is tried, and what messages name."""

from typing import Final

MAX_FAULTS_PER_JOB: Final = 100
"""Faults of pod templates that are reported for a job: a message lists fewer."""
MAX_MOUNT_SUGGESTIONS: Final = 5
"""Names of volumes that are suggested in a review."""
MAX_TEMPLATE_ANNOTATIONS_BYTES: Final = 256 * 1024
"""Bytes of all annotations of a template: the API server takes no more."""
MAX_GPUS_PER_NODE_TRIED: Final = 1024
"""GPUs of a node that are tried for a suggestion: a user may ask for any number."""
MAX_WORKERS_TRIED: Final = 2**31 - 1
"""Workers that are tried for a suggestion."""
MAX_SHOWN_RDMA_DEVICES: Final = 3
"""RDMA resources that a message names."""
MAX_CACHED_DEFAULTS: Final = 64
"""Namespaces' defaults for which the charge of a pod shape is cached."""
MAX_OTHER_QUOTAS: Final = 5
"""Further quotas that a message names."""
MAX_TOPOLOGIES_TRIED: Final = 4
"""Topology requests that are tried for a job."""
MAX_SHOWN_LOCAL_QUEUES: Final = 3
"""LocalQueues that a message names."""
