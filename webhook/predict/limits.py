"""Limits of predictions: what is tried, what messages name, and what a TrainJob and its runtime may become together."""

from typing import Final

MAX_OTHER_PODS_BYTES: Final = 256 * 1024
"""Bytes of the templates of all other pods than launcher and nodes: patches may repeat what they add in each."""
MAX_MERGED_VALUES: Final = 50_000
"""Values that are looked at where a TrainJob's are merged into a runtime's: the path of each is kept in memory."""
PATH_CHARACTERS_PER_VALUE: Final = 256
"""Characters of a path that count as one more of these values."""
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
MAX_EVENTS_SHOWN: Final = 5
"""Warning Events of a job that `why` shows."""
MAX_TEXT_CHARACTERS: Final = 8192
"""Characters of a text of the cluster that `why` reads: patterns take the square of its length."""
MAX_CAUSE_CHARACTERS: Final = 1024
"""Characters of a cause, as of an Event's message."""
MAX_LINE_CHARACTERS: Final = 300
"""Characters of a cause on one line."""
MAX_REJECTION_CHARACTERS: Final = 1024
"""Characters of a rejection that patterns search, which takes the square of its length."""
MAX_LOG_LINE_CHARACTERS: Final = 500
"""Characters of a log line that patterns search."""
MAX_LINES_WITH_ERRORS: Final = 10
"""Last lines of a program's log of which one may be called an error: earlier errors were probably survived."""
MAX_AMOUNT_DIGITS: Final = 9
"""Digits of a number of devices that `why` adds up."""
