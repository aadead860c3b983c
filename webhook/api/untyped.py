"""Access to JSON of unknown shape: a value of the wrong type counts as missing."""

from math import isinf
from typing import Any, Final

import msgspec


def number(text: str) -> float:
    """The value of a number with a point or an exponent. msgspec's own parser takes 10 microseconds for 1e+308."""
    value = float(text)
    if isinf(value):
        raise ValueError("Number out of range")
    return value


_decoder: Final = msgspec.json.Decoder(float_hook=number)


def decode(data: bytes | str | msgspec.Raw) -> Any:
    """msgspec.DecodeError if the data is not JSON."""
    return _decoder.decode(data)


def without_nulls(value: Any) -> Any:
    """The value without the keys that have the value null. The API server stores objects in this form."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def mapping(value: Any) -> dict[str, Any]:
    """`value`, or an empty mapping if it has a different type."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The items of a list, with `{}` for an item that is not a mapping; empty if `value` is not a list."""
    return [mapping(item) for item in value] if isinstance(value, list) else []


def at(value: Any, *keys: str) -> dict[str, Any]:
    """The mapping at this path of keys; empty if it does not exist."""
    for key in keys:
        value = mapping(value).get(key)
    return mapping(value)
