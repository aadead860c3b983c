"""Limits of `doctor`."""

from typing import Final

MAX_RIGHTS_READ_AT_ONCE: Final = 8
"""Access reviews in parallel. The limit protects the API server."""
