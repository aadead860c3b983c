"""Limits of `doctor`."""

from typing import Final

MAX_LINES_PER_CHECK: Final = 5
"""Lines of one check: a wrong template makes thousands of jobs alike."""
MAX_RIGHTS_READ_AT_ONCE: Final = 8
"""Questions about rights at once: the load of the API server."""
