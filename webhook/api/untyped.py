"""JSON of which nothing is certain: what is of another type than it should be is not there."""

from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """`value`, or nothing where it is no mapping."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The items of a list, each a mapping; nothing where it is no list."""
    return [mapping(item) for item in value] if isinstance(value, list) else []


def at(value: Any, *keys: str) -> dict[str, Any]:
    """The mapping at the end of these keys; an empty one where there is none."""
    for key in keys:
        value = mapping(value).get(key)
    return mapping(value)
