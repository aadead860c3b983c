"""Access to API objects as unchecked JSON. A missing field and a field of the wrong type give the same result."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from webhook.parts.why.limits import MAX_TEXT_CHARACTERS

_UNREADABLE: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\N{REPLACEMENT CHARACTER}")
NOTHING: Mapping[str, Any] = {}


def at(value: Any, *path: str) -> Any:
    """The value at the path, or None."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    """The mapping at the path, or an empty mapping."""
    found = at(value, *path)
    return found if isinstance(found, Mapping) else NOTHING


def items(value: Any, *path: str) -> list[Mapping[str, Any]]:
    """The mappings in the list at the path; other items are left out."""
    found = at(value, *path)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def text(value: Any, *path: str) -> str:
    """The text at the path on one line, or an empty text."""
    found = at(value, *path)
    return " ".join(clean(found[:MAX_TEXT_CHARACTERS]).split()) if isinstance(found, str) else ""


def clean(raw: str) -> str:
    """`raw` without colours, control characters and replacement characters for invalid UTF-8."""
    return "".join(char for char in _UNREADABLE.sub("", raw) if char.isprintable() or char.isspace())


def number(value: Any, *path: str) -> int | None:
    """The integer at the path, or None."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def moment(value: Any, *path: str) -> datetime | None:
    """The time at the path, UTC if it has no time zone; None if it is missing or not a time."""
    try:
        parsed = datetime.fromisoformat(text(value, *path))
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def name(value: Any) -> str:
    return text(value, "metadata", "name")


def condition(value: Any, kind: str) -> Mapping[str, Any]:
    """The status condition of type `kind`, or an empty mapping."""
    return next((each for each in items(value, "status", "conditions") if each.get("type") == kind), NOTHING)


def holds(value: Any, kind: str) -> bool:
    """Whether the status condition of type `kind` is True."""
    return condition(value, kind).get("status") == "True"
