"""Limits for plug-ins."""

from typing import Final

MAX_ID_CHARACTERS: Final = 50
"""Characters of a rule's or injection's id."""
