"""Limits of `doctor`."""

from typing import Final

MAX_LINES_PER_CHECK: Final = 5
"""Lines of one check. A wrong template can cause the same problem in thousands of jobs."""
MAX_RIGHTS_READ_AT_ONCE: Final = 8
"""Access reviews in parallel. The limit protects the API server."""
