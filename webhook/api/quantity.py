"""Kubernetes quantities (`32`, `1500m`, `16Gi`) as exact integers of billionths.

Only parsing rounds; sums and comparisons are exact. The model is `resource.ParseQuantity`, which rounds to billionths,
away from zero. A number with a binary unit is at most 2**63-1; a number with a decimal unit has no maximum.
https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/api/resource/quantity.go

This module rejects some texts that `ParseQuantity` accepts:

* text without a digit (`Gi`, `+`, `.`), and text with surrounding blanks. The pattern for quantities in CRD schemas
  rejects both, so no stored MPIJob has them.
* more than 64 characters, or an exponent beyond +-99. A few bytes of text must not become gigabytes of memory.
  `ParseQuantity` cuts the exponent to 32 bits, so it reads `1e4294967296` as 1.
"""

import json
import re
from functools import lru_cache
from math import ceil
from typing import Final, NewType

from webhook.api.limits import MAX_QUANTITY_CHARACTERS, MAX_QUANTITY_EXPONENT

Quantity = NewType("Quantity", int)

NANO: Final = 10**9


_TOO_LARGE: Final = 10**MAX_QUANTITY_CHARACTERS
_CAP: Final = (2**63 - 1) * NANO
_BINARY: Final = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL: Final = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SMALL_UNITS: Final = (("", NANO), ("m", 10**6), ("u", 10**3), ("n", 1))
# `format` prefers the first of several texts of equal length, so binary units come first.
_WHOLE_UNITS: Final = (*_BINARY.items(), *((unit, 10 ** _DECIMAL[unit]) for unit in "kMGTPE"))

_GRAMMAR: Final = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?",
)
_WITH_WORD: Final = re.compile(r"\s*([+-]?[0-9]+(?:[.,][0-9]+)?)([a-zA-Z\s]*)")
_BYTES: Final = re.compile(r"(?i)([kmgtpe])(?:(i)?b?|(?:ilo|ega|iga|era)bytes?)")
IN_WORDS: Final = {"one": "1", "two": "2", "three": "3", "four": "4", "eight": "8"}
_KINDS: Final = {bool: "true or false", dict: "a mapping", list: "a list", type(None): "nothing"}


class QuantityError(ValueError):
    """The value is not a quantity. The message is the reason."""

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self._text = IN_WORDS.get(text.strip().lower(), text)

    def fix(self, resource: str = "memory") -> str:
        example = "1" if "/" in resource else "4" if resource == "cpu" else "16Gi"
        return f"Write {_meant(self._text, resource) or f'{example}, or what is needed'}."


def parse(value: object) -> Quantity:
    """The billionths in a quantity from JSON or YAML: text, an integer, or a finite float.

    A float is read as its shortest decimal: `0.1` is exactly 100m. QuantityError for any other type, including bool.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        kind = _KINDS.get(type(value), "this")
        raise QuantityError(f"{kind} is not a quantity")
    if isinstance(value, float):
        return _parse_text(repr(value))
    if not -_TOO_LARGE < value < _TOO_LARGE:
        raise QuantityError("the number is too large for a quantity")
    return Quantity(value * NANO)


@lru_cache(maxsize=4096)  # the jobs of a cluster repeat a few hundred texts of at most 64 characters
def _parse_text(text: str) -> Quantity:
    if len(text) > MAX_QUANTITY_CHARACTERS:
        raise QuantityError(f"text of {len(text)} characters is too long for a quantity")  # errors are not cached
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        shown = json.dumps(text) if text else "empty text"  # json escapes characters that look like digits or blanks
        raise QuantityError(f"{shown} is not a quantity", text)
    sign, digits, fraction, unit = match.groups(default="")
    exponent = 0 if unit in _BINARY else _DECIMAL[unit] if unit in _DECIMAL else int(unit[1:])
    if abs(exponent) > MAX_QUANTITY_EXPONENT:
        raise QuantityError(f"{json.dumps(text)} has an exponent beyond {MAX_QUANTITY_EXPONENT}")
    mantissa = int(digits + fraction) * _BINARY.get(unit, 1)
    shift = exponent + 9 - len(fraction)
    amount: int = mantissa * 10**shift if shift >= 0 else -(-mantissa // 10**-shift)
    if unit in _BINARY:
        amount = min(amount, _CAP)
    return Quantity(-amount if sign == "-" else amount)


def _meant(text: str, resource: str) -> str:
    """The amount meant by a number with a misspelt unit, such as `16 GB`; empty if the meaning is unclear."""
    match = _WITH_WORD.fullmatch(text)
    if match is None:  # a number may follow a device's name
        devices = text.rpartition(":")[2] if "/" in resource else ""
        return devices if devices.isascii() and devices.isdecimal() else ""
    number, written = match[1].replace(",", "."), "".join(match[2].split())
    if "/" in resource:  # extended resources such as nvidia.com/gpu are whole numbers
        return str(ceil(float(number)))
    if resource == "cpu" or not written:
        return f"{number}m" if written[:2].lower() in {"m", "mc", "mi"} else f'"{number}"'
    if _GRAMMAR.fullmatch(number + written):
        return number + written
    if (unit := _BYTES.fullmatch(written)) is None:
        return ""
    letter = unit[1].upper()
    return f"{number}{letter}i" + ("" if unit[2] else f" or {number}{'k' if letter == 'K' else letter}")


def is_whole(quantity: Quantity) -> bool:
    return quantity % NANO == 0


def whole(quantity: Quantity) -> int:
    """The quantity in whole units, rounded away from zero like upstream's `Quantity.Value`."""
    return quantity // NANO if quantity < 0 else -(-quantity // NANO)


def format(quantity: Quantity) -> str:  # noqa: A001 - the counterpart of `parse`, always used as quantity.format
    """Shortest exact text for people: `32`, `1500m`, `4Gi`.

    Whole numbers below a million have no unit, so 1024 GPUs are not `1Ki`.
    """
    number, unit = next((quantity // size, unit) for unit, size in _SMALL_UNITS if quantity % size == 0)
    if unit or abs(number) < 10**6:
        return f"{number}{unit}"
    texts = [f"{number // size}{unit}" for unit, size in _WHOLE_UNITS if number % size == 0]
    return min([*texts, str(number)], key=len)
