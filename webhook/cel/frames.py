"""What the worker and whoever asks it agree on: lengths of messages, and bounds."""

import struct
from typing import Final

LENGTH: Final = struct.Struct(">I")
"""Before each message."""
MEMORY: Final = 192 * 1024 * 1024
"""Beside the service there has to be room for it in the container: beyond its limit all of that would end."""
SECONDS: Final = 0.25
"""Of processor time, for one expression and one job."""
