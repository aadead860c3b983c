"""The read-only interface to the cluster that rules and injections see.

Every answer is a record, ABSENT (it is known not to exist) or UNKNOWN (nobody can tell: not synced, no permission,
kind not installed). Unknown never denies.
"""

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A class of the scheduler's, for pods."""

    name: str


@dataclass(frozen=True, slots=True)
class WorkloadPriorityClass:
    """A class of Kueue's, for the place in the queue."""

    name: str


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """A claim; `storage_class` is None where it names none, and empty for one that wants a volume without."""

    namespace: str
    name: str
    storage_class: str | None


class ClusterView(Protocol):
    """What can be asked."""

    def namespaces(self) -> Sequence[Namespace] | Answer:
        """Every namespace there is."""
        ...

    def namespace(self, name: str) -> Namespace | Answer:
        """The namespace called `name`."""
        ...

    def mpijob(self, namespace: str, name: str) -> MPIJob | Answer:
        """The stored job; the record must not be changed."""
        ...

    def priority_class(self, name: str) -> PriorityClass | Answer:
        """The PriorityClass called `name`."""
        ...

    def workload_priority_class(self, name: str) -> WorkloadPriorityClass | Answer:
        """Kueue's WorkloadPriorityClass called `name`."""
        ...

    def persistent_volume_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | Answer:
        """The claim called `name` in `namespace`."""
        ...


class NothingKnown:
    """The view of a service that watches nothing: every answer is UNKNOWN."""

    def namespaces(self) -> Answer:
        """UNKNOWN."""
        return UNKNOWN

    def namespace(self, name: str) -> Answer:
        """UNKNOWN."""
        return UNKNOWN

    def mpijob(self, namespace: str, name: str) -> Answer:
        """UNKNOWN."""
        return UNKNOWN

    def priority_class(self, name: str) -> Answer:
        """UNKNOWN."""
        return UNKNOWN

    def workload_priority_class(self, name: str) -> Answer:
        """UNKNOWN."""
        return UNKNOWN

    def persistent_volume_claim(self, namespace: str, name: str) -> Answer:
        """UNKNOWN."""
        return UNKNOWN
