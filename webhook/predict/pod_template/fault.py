"""The faults of the pod templates of a job."""

from enum import Enum, auto
from typing import NamedTuple

from webhook.predict.limits import MAX_FAULTS_PER_JOB


class Kind(Enum):
    """The API server's kinds of faults (apimachinery `field.ErrorType`)."""

    INVALID = auto()
    REQUIRED = auto()
    NOT_SUPPORTED = auto()
    FORBIDDEN = auto()


class Fault(NamedTuple):
    """A reason why the API server rejects the pods. `advisory` is True if the rejection is likely but not certain."""

    path: str
    message: str
    fix: str
    kind: Kind = Kind.INVALID
    advisory: bool = False


class Faults(list[Fault]):
    """At most MAX_FAULTS_PER_JOB faults."""

    def add(self, path: str, message: str, fix: str, kind: Kind = Kind.INVALID, *, advisory: bool = False) -> None:
        """Adds a fault, unless the list is full or the path already has a fault with the same `advisory`."""
        if len(self) < MAX_FAULTS_PER_JOB and all((other.path, other.advisory) != (path, advisory) for other in self):
            self.append(Fault(path, message, fix, kind, advisory))


def shown(text: str, limit: int = 100) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
