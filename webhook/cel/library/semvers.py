"""`semver('1.2.3')` and its functions.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/cel/library/semverlib.go
"""

import re
from typing import Any, Final

from webhook.cel.library.declared import BOOL, INT, STRING, Declared, Function, Method, Text, parses

_NUMBER: Final = r"(0|[1-9][0-9]*)"
_GRAMMAR: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_PRE: Final = re.compile(r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)")
_LARGEST: Final = 2**64


class Version(Text):
    """A semantic version without build metadata, which comparisons ignore."""

    type = "kubernetes.Semver"

    @property
    def numbers(self) -> tuple[int, ...]:
        """Major, minor and patch."""
        return tuple(map(int, self.text.partition("-")[0].split(".")))

    @property
    def order(self) -> tuple[Any, ...]:
        """The sort key. A version without a pre-release is higher than its pre-releases."""
        _, dash, pre = self.text.partition("-")
        parts = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in pre.split(".")] if dash else []
        return *self.numbers, not dash, parts


def _version(text: str) -> Version:
    match = _GRAMMAR.fullmatch(text)
    pre = match[4] if match else None
    if match is None or (pre and not all(map(_PRE.fullmatch, pre.split(".")))):
        raise ValueError(f"{text!r} is not a semantic version")
    if any(int(number) >= _LARGEST for number in match.groups()[:3]):
        raise ValueError(f"a number of {text!r} is too large")
    return Version(f"{match[1]}.{match[2]}.{match[3]}" + (f"-{pre}" if pre else ""))


def _compare(version: Version, other: Version) -> int:
    return (version.order > other.order) - (version.order < other.order)


FUNCTIONS: Final[tuple[Declared, ...]] = (
    Function("semver", [STRING], Version, _version),
    Function("isSemver", [STRING], BOOL, parses(_version)),
    Method("major", [Version], INT, lambda version: version.numbers[0]),
    Method("minor", [Version], INT, lambda version: version.numbers[1]),
    Method("patch", [Version], INT, lambda version: version.numbers[2]),
    Method("compareTo", [Version, Version], INT, _compare),
    Method("isLessThan", [Version, Version], BOOL, lambda version, other: version.order < other.order),
    Method("isGreaterThan", [Version, Version], BOOL, lambda version, other: version.order > other.order),
)
