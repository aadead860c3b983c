"""Limits of TrainJobs and runtimes: what is cached, and how large they may become together."""

from typing import Final

MAX_RUNTIME_BYTES: Final = 256 * 1024
"""Bytes of a training runtime in the cache. Trainer's own have some 2 KiB."""
MAX_NAMESPACE_RUNTIMES_BYTES: Final = 1024 * 1024
"""Bytes of a namespace's training runtimes in the cache."""
MAX_RUNTIMES_BYTES: Final = 16 * 1024 * 1024
"""Bytes of all training runtimes in the cache."""
MAX_OTHER_PODS_BYTES: Final = 256 * 1024
"""Bytes of the templates of all pods except launcher and nodes: patches may repeat what they add in each."""
MAX_MERGED_VALUES: Final = 50_000
"""Values that a merge of a TrainJob into a runtime may visit: the path of each is in memory."""
PATH_CHARACTERS_PER_VALUE: Final = 256
"""Characters of a path that use up one more of these values."""
