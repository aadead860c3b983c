"""What the worker and whoever asks it agree on: lengths of messages, and bounds."""

import struct
from typing import Final

LENGTH: Final = struct.Struct(">I")
"""Before each message."""
MEMORY: Final = 512 * 1024 * 1024
SECONDS: Final = 0.25
"""Of processor time, for one expression and one job."""
