"""Objects of the API as plain, unchecked JSON: a field of the wrong type is treated as missing."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from webhook.parts.why.limits import MAX_TEXT_CHARACTERS

_UNREADABLE: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\N{REPLACEMENT CHARACTER}")
NOTHING: Mapping[str, Any] = {}


def at(value: Any, *path: str) -> Any:
    """The value, None if it is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    """The mapping there."""
    found = at(value, *path)
    return found if isinstance(found, Mapping) else NOTHING


def items(value: Any, *path: str) -> list[Mapping[str, Any]]:
    """The mappings in the list there."""
    found = at(value, *path)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def text(value: Any, *path: str) -> str:
    """The text there, on one line."""
    found = at(value, *path)
    return " ".join(clean(found[:MAX_TEXT_CHARACTERS]).split()) if isinstance(found, str) else ""


def clean(raw: str) -> str:
    """`raw` without colours, control characters, and bytes that were no UTF-8."""
    return "".join(char for char in _UNREADABLE.sub("", raw) if char.isprintable() or char.isspace())


def number(value: Any, *path: str) -> int | None:
    """The whole number there."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def moment(value: Any, *path: str) -> datetime | None:
    """The time there."""
    try:
        found = datetime.fromisoformat(text(value, *path))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def name(value: Any) -> str:
    """An object's name."""
    return text(value, "metadata", "name")


def condition(value: Any, kind: str) -> Mapping[str, Any]:
    """The condition of this type in an object's status."""
    return next((each for each in items(value, "status", "conditions") if each.get("type") == kind), NOTHING)


def holds(value: Any, kind: str) -> bool:
    """Whether the condition of this type is true."""
    return condition(value, kind).get("status") == "True"
