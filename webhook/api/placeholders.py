"""Placeholders in a converted job. Their text describes the value that the user must fill in.

No cluster accepts a placeholder: it is not a valid image name or claim name. The command `check` reports placeholders.
"""

from collections.abc import Iterator
from typing import Any, Final

MARK: Final = "FILL-IN: "


def fill_in(description: str) -> str:
    return f"{MARK}{description}"


def find(document: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, description) of each placeholder."""
    if isinstance(document, dict):
        for key, value in document.items():
            bracket = "." in key or "/" in key or path.endswith("mpiReplicaSpecs")
            yield from find(value, f"{path}[{key}]" if bracket else f"{path}.{key}" if path else key)
    elif isinstance(document, list):
        for number, item in enumerate(document):
            yield from find(item, f"{path}[{number}]")
    elif isinstance(document, str) and (position := document.find(MARK)) >= 0:
        yield path, document[position + len(MARK) :]
