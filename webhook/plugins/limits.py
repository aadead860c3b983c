"""Limits of plug-ins."""

from typing import Final

MAX_ID_CHARACTERS: Final = 50
"""Characters of the id of a rule or injection."""
