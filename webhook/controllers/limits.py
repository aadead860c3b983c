"""Limits of the controllers."""

from typing import Final

MAX_WAITING_FOR_KEYS: Final = 256
"""Reviews that wait for an SSH key at the same time. Generating a key takes half a second of processor time."""
MAX_KEY_WORKERS: Final = 4
"""Threads that make SSH keys, regardless of the number of processors."""
MAX_CALLS_PER_SECOND: Final = 40.0
"""Calls per second by one controller, to limit the load of the API server."""
MAX_CALLS_AT_ONCE: Final = 80
"""Calls by one controller in a burst after a pause."""
MAX_RECONCILES_AT_ONCE: Final = 8
"""Objects that one controller reconciles at the same time."""
