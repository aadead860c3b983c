"""Limits of the controllers next to reviews."""

from typing import Final

MAX_WAITING_FOR_KEYS: Final = 256
"""Reviews that wait for an SSH key at once: each key takes a second of processor time."""
MAX_KEY_WORKERS: Final = 4
"""Threads that make SSH keys, however many processors the node has."""
MAX_CALLS_PER_SECOND: Final = 40.0
"""Calls a second of one controller: the load of the API server."""
MAX_CALLS_AT_ONCE: Final = 80
"""Calls of one controller at once after a pause."""
MAX_RECONCILES_AT_ONCE: Final = 8
"""Objects that one controller works on at once."""
