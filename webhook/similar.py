"""Which name was meant."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

# Comparing takes tens of microseconds for each name, and a namespace may hold many thousand.
_COMPARED: Final = 1000
_LENGTHS: Final = 3


def meant(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that is most like `name`, None where none is near. Of very many only some are compared."""
    near = [other for other in known if abs(len(other) - len(name)) <= _LENGTHS or name in other or other in name]
    found = get_close_matches(name, near[:_COMPARED], n=1, cutoff=0.6)
    return found[0] if found else next((other for other in near[:_COMPARED] if name and name in other), None)
