"""What a converted job leaves to its user: texts that no cluster takes for a value, and that say what belongs there.

An image of such a text is refused, a claim of it never found. `check` looks for them itself, so that all are told, each
in the words of the conversion.
"""

from collections.abc import Iterator
from typing import Any, Final

MARK: Final = "FILL-IN: "


def fill_in(what: str) -> str:
    """A text in the place of `what`."""
    return f"{MARK}{what}"


def find(document: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The path of each, and what belongs there."""
    if isinstance(document, dict):
        for key, value in document.items():
            bracket = "." in key or "/" in key or path.endswith("mpiReplicaSpecs")
            yield from find(value, f"{path}[{key}]" if bracket else f"{path}.{key}" if path else key)
    elif isinstance(document, list):
        for number, item in enumerate(document):
            yield from find(item, f"{path}[{number}]")
    elif isinstance(document, str) and (position := document.find(MARK)) >= 0:
        yield path, document[position + len(MARK) :]
