"""Limits of the playground."""

from typing import Final

MAX_BODY_BYTES: Final = 32 * 2**20
"""Bytes of the body of a request to the playground."""
