"""Levels and versions of the Pod Security Standards. A version selects the checks of a Kubernetes version.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """The levels, ordered from the most to the fewest permissions."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"

    @property
    def strictness(self) -> int:
        return _LEVELS.index(self)


_LEVELS = (*Level,)


class Version(NamedTuple):
    """`v1.<minor>`, or LATEST, which sorts last."""

    minor: int

    def __str__(self) -> str:
        return "latest" if self == LATEST else f"v1.{self.minor}"


LATEST = Version(2**63)  # above every version that a label can have
NEWEST = Version(37)  # the last version whose checks are implemented


class LevelVersion(NamedTuple):
    """A level at a version, printed as `restricted:v1.30`."""

    level: Level = Level.PRIVILEGED
    version: Version = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


def parse_level(text: str) -> Level:
    """Raises ValueError if `text` is not the name of a level."""
    try:
        return Level(text)
    except ValueError:
        raise ValueError(f"must be one of {', '.join(Level)}") from None


def parse_version(text: str) -> Version:
    """Reads `latest` or `v1.<minor>` without leading zeros. Raises ValueError for other texts."""
    if text == "latest":
        return LATEST
    minor = text.removeprefix("v1.")
    number = minor.isascii() and minor.isdigit() and (minor == "0" or minor[0] != "0")
    # Kubernetes parses the number as a 64-bit integer.
    if minor == text or not number or len(minor) > 19 or int(minor) >= 2**63:
        raise ValueError('must be "latest" or "v1.x"')
    return Version(int(minor))
