"""Access to API objects as unchecked JSON. A value of the wrong type counts as missing."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from webhook.parts.why.limits import MAX_TEXT_CHARACTERS

_UNREADABLE: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\N{REPLACEMENT CHARACTER}")
NOTHING: Mapping[str, Any] = {}


def at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    field = at(value, *path)
    return field if isinstance(field, Mapping) else NOTHING


def items(value: Any, *path: str) -> list[Mapping[str, Any]]:
    field = at(value, *path)
    return [item for item in field if isinstance(item, Mapping)] if isinstance(field, list) else []


def text(value: Any, *path: str) -> str:
    """The text on one line, or an empty text."""
    field = at(value, *path)
    return " ".join(clean(field[:MAX_TEXT_CHARACTERS]).split()) if isinstance(field, str) else ""


def clean(raw: str) -> str:
    """Removes colours, control characters and invalid UTF-8."""
    return "".join(char for char in _UNREADABLE.sub("", raw) if char.isprintable() or char.isspace())


def number(value: Any, *path: str) -> int | None:
    field = at(value, *path)
    return field if isinstance(field, int) and not isinstance(field, bool) else None


def moment(value: Any, *path: str) -> datetime | None:
    """The time, in UTC if it has no time zone; None if it is missing or invalid."""
    try:
        parsed = datetime.fromisoformat(text(value, *path))
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def name(value: Any) -> str:
    return text(value, "metadata", "name")


def condition(value: Any, kind: str) -> Mapping[str, Any]:
    return next((item for item in items(value, "status", "conditions") if item.get("type") == kind), NOTHING)


def holds(value: Any, kind: str) -> bool:
    return condition(value, kind).get("status") == "True"
