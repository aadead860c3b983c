"""The read-only interface to the cluster that rules and injections see.

Every answer is a record, ABSENT (it is known not to exist) or UNKNOWN (nobody can tell: not synced, no permission,
kind not installed). Unknown never denies.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

from webhook.api.mpijob import MPIJob


class Answer(Enum):
    """An answer without a record."""

    ABSENT = "absent"
    UNKNOWN = "unknown"


ABSENT: Literal[Answer.ABSENT] = Answer.ABSENT
UNKNOWN: Literal[Answer.UNKNOWN] = Answer.UNKNOWN


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and its labels."""

    name: str
    labels: dict[str, str]


class ClusterView(Protocol):
    """What can be asked."""

    def namespace(self, name: str) -> Namespace | Answer:
        """The namespace called `name`."""
        ...

    def mpijob(self, namespace: str, name: str) -> MPIJob | Answer:
        """The stored job; the record must not be changed."""
        ...


class NothingKnown:
    """The view of a service that watches nothing: every answer is UNKNOWN."""

    def namespace(self, name: str) -> Answer:
        """UNKNOWN."""
        return UNKNOWN

    def mpijob(self, namespace: str, name: str) -> Answer:
        """UNKNOWN."""
        return UNKNOWN
