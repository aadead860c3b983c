"""Changes of certificates, reported to the program that uses them, for Events, logs and metrics."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """A change, reported once."""

    reason: str
    """In the form of an Event's reason in Kubernetes, such as `CAPromoted`."""
    message: str
    """One line for a human."""
    warning: bool = False


Listener = Callable[[Notice], None]


def ignore(_: Notice) -> None:
    """A listener that discards notices."""
