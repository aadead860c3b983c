"""Limits of TrainJobs and runtimes: what is kept in memory, and what they may become together."""

from typing import Final

MAX_RUNTIME_BYTES: Final = 256 * 1024
"""Bytes of a training runtime that is kept in memory. Trainer's own have some 2 KiB."""
MAX_NAMESPACE_RUNTIMES_BYTES: Final = 1024 * 1024
"""Bytes of the training runtimes of a namespace that are kept in memory."""
MAX_RUNTIMES_BYTES: Final = 16 * 1024 * 1024
"""Bytes of all training runtimes that are kept in memory."""
MAX_OTHER_PODS_BYTES: Final = 256 * 1024
"""Bytes of the templates of all other pods than launcher and nodes: patches may repeat what they add in each."""
MAX_MERGED_VALUES: Final = 50_000
"""Values that are looked at where a TrainJob's are merged into a runtime's: the path of each is kept in memory."""
PATH_CHARACTERS_PER_VALUE: Final = 256
"""Characters of a path that count as one more of these values."""
