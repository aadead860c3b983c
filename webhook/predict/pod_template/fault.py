"""A fault of a pod template: its path, the message, and the fix."""

from enum import Enum, auto
from typing import NamedTuple

from webhook.predict.limits import MAX_FAULTS_PER_JOB


class Kind(Enum):
    """The kinds of fault in the API server (apimachinery `field.ErrorType`)."""

    INVALID = auto()
    REQUIRED = auto()
    NOT_SUPPORTED = auto()
    FORBIDDEN = auto()


class Fault(NamedTuple):
    """A reason for which the API server rejects the pods; a reason that is only likely is `advisory`."""

    path: str
    message: str
    fix: str
    kind: Kind = Kind.INVALID
    advisory: bool = False


class Faults(list[Fault]):
    """The faults found so far, up to MAX_FAULTS_PER_JOB of them."""

    def add(self, path: str, message: str, fix: str, kind: Kind = Kind.INVALID, *, advisory: bool = False) -> None:
        """Add one, unless the same place has a fault already: one cause gives one message."""
        if len(self) < MAX_FAULTS_PER_JOB and all((other.path, other.advisory) != (path, advisory) for other in self):
            self.append(Fault(path, message, fix, kind, advisory))


def shown(text: str, limit: int = 100) -> str:
    """Enough of a user's text to recognise it."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
