"""Limits of plug-ins."""

from typing import Final

MAX_FINDINGS: Final = 100
"""Findings of one rule or injection of a plug-in in one review."""
MAX_TEXT_CHARACTERS: Final = 2_000
"""Characters of a message, a fix or a note of a plug-in."""
MAX_ENTRIES: Final = 100
"""Rules and injections of all plug-ins: each is a label value of metrics."""
MAX_ID_CHARACTERS: Final = 50
"""Characters of the id of a rule or injection."""
