"""Limits for cached runtimes, and for merging a TrainJob into its runtime."""

from typing import Final

MAX_RUNTIME_BYTES: Final = 256 * 1024
"""Bytes of a training runtime in the cache. The runtimes that Trainer installs have about 2 KiB."""
MAX_NAMESPACE_RUNTIMES_BYTES: Final = 1024 * 1024
"""Bytes of a namespace's training runtimes in the cache."""
MAX_RUNTIMES_BYTES: Final = 16 * 1024 * 1024
"""Bytes of all training runtimes in the cache."""
MAX_OTHER_PODS_BYTES: Final = 256 * 1024
"""Bytes of the templates of all pods except launcher and nodes: a patch may add the same fields to each template."""
MAX_MERGED_VALUES: Final = 50_000
"""Values that a merge of a TrainJob into a runtime may visit: the path of each value is stored in memory."""
PATH_CHARACTERS_PER_VALUE: Final = 256
"""The number of characters of a path that count as much as one value towards MAX_MERGED_VALUES."""
