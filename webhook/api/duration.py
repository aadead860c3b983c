"""Durations as users write them: `90m`, `72h`, `1h30m`, `7d`.

The grammar is that of Go (https://pkg.go.dev/time#ParseDuration) plus days. Signs, blanks and units below a second are
not allowed. The total is a whole number of seconds, the unit of `activeDeadlineSeconds`.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from webhook.api.limits import MAX_DURATION_CHARACTERS

MAX_SECONDS: Final = 2**31 - 1
"""The maximum `activeDeadlineSeconds` of a pod, 68 years (core validation, `ValidatePodSpec`)."""


_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PART: Final = re.compile(rf"({_NUMBER.pattern})([dhms])")
_GRAMMAR: Final = re.compile(f"(?:{_PART.pattern})+")


class DurationError(ValueError):
    """The text is not a duration. The message is a predicate, such as `is longer than 24855d`."""


def is_written_well(text: str) -> bool:
    """Whether the text follows the grammar. The duration may still be out of range."""
    return len(text) <= MAX_DURATION_CHARACTERS and _GRAMMAR.fullmatch(text) is not None


def meant(text: str) -> str | None:
    """The valid spelling of a duration such as `3 days` or `24:00:00`; None if the meaning is unclear."""
    clock = re.sub(r"(\d+):(\d\d):(\d\d)", r"\1h\2m\3s", text.strip().lower()[:MAX_DURATION_CHARACTERS])
    short = re.sub(r"([0-9])\s*([dhms])[a-z]*\s*", r"\1\2", clock)
    return short if is_written_well(short) else None


@lru_cache(maxsize=1024)
def parse(text: str) -> int:
    """Seconds, from 1 to MAX_SECONDS. DurationError if the text is invalid."""
    if len(text) <= MAX_DURATION_CHARACTERS and _NUMBER.fullmatch(text):
        raise DurationError("needs a unit, for example 72h or 7d")
    if not is_written_well(text):
        raise DurationError("is not a duration like 72h or 7d")
    seconds = sum(Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if not seconds:
        raise DurationError("is zero")
    if seconds.denominator != 1:
        raise DurationError("is not whole seconds")
    if seconds > MAX_SECONDS:
        raise DurationError(f"is longer than {MAX_SECONDS // _UNITS['d']}d")
    return int(seconds)


def spell(seconds: int) -> str:
    """The shortest text for a number of seconds (0 or more), such as `3d` or `1h30m`."""
    parts = []
    for unit, size in _UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
