"""Placeholders in a converted job: texts that no cluster accepts, with a description of the value for the user to fill
in.

An image with such a text is rejected, and a claim of this name does not exist. `check` searches for placeholders, so
that it reports all of them, in the words of the conversion.
"""

from collections.abc import Iterator
from typing import Any, Final

MARK: Final = "FILL-IN: "


def fill_in(what: str) -> str:
    """A placeholder for `what`."""
    return f"{MARK}{what}"


def find(document: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The path and description of each placeholder."""
    if isinstance(document, dict):
        for key, value in document.items():
            bracket = "." in key or "/" in key or path.endswith("mpiReplicaSpecs")
            yield from find(value, f"{path}[{key}]" if bracket else f"{path}.{key}" if path else key)
    elif isinstance(document, list):
        for number, item in enumerate(document):
            yield from find(item, f"{path}[{number}]")
    elif isinstance(document, str) and (position := document.find(MARK)) >= 0:
        yield path, document[position + len(MARK) :]
