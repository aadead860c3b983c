"""Levels and versions of the Pod Security Standards.

A version is that of Kubernetes whose checks apply: `v1.0` and up, or `latest`.
https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """Levels of permissions: privileged allows everything, baseline the usual ones, restricted the fewest."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"

    @property
    def strictness(self) -> int:
        """0 for privileged, 2 for restricted: compare levels by this, because their texts are not ordered."""
        return _STRICTNESS[self]


_STRICTNESS = {level: strictness for strictness, level in enumerate(Level)}


class Version(NamedTuple):
    """`v1.<minor>`; ordered, with LATEST above all."""

    minor: int

    def __str__(self) -> str:
        return "latest" if self == LATEST else f"v1.{self.minor}"


LATEST = Version(2**63)  # one more than a label can say
NEWEST = Version(37)  # the last version with checks here


class LevelVersion(NamedTuple):
    """The setting of a namespace's mode, printed as `restricted:v1.30`."""

    level: Level = Level.PRIVILEGED
    version: Version = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


def parse_level(text: str) -> Level:
    """The level called `text`; ValueError otherwise."""
    try:
        return Level(text)
    except ValueError:
        raise ValueError(f"must be one of {', '.join(Level)}") from None


def parse_version(text: str) -> Version:
    """`latest` or `v1.<minor>` without leading zeros; ValueError otherwise."""
    if text == "latest":
        return LATEST
    minor = text.removeprefix("v1.")
    number = minor.isascii() and minor.isdigit() and (minor == "0" or minor[0] != "0")
    # Upstream reads the number into 64 bits.
    if minor == text or not number or len(minor) > 19 or int(minor) >= 2**63:
        raise ValueError('must be "latest" or "v1.x"')
    return Version(int(minor))
