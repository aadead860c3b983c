"""Placeholders in a converted job: texts that no cluster accepts, and that describe the value for the user to fill
in.

A placeholder is not a valid image name, and no claim has it as a name. `check` searches for placeholders, so it reports
all of them with the descriptions from the conversion.
"""

from collections.abc import Iterator
from typing import Any, Final

MARK: Final = "FILL-IN: "


def fill_in(what: str) -> str:
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
