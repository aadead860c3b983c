"""What happened to certificates, reported to the program that uses them, for Events, logs and metrics."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """Something happened; reported once."""

    reason: str
    """In the form that Kubernetes wants for the reason of an Event, such as `CAPromoted`."""
    message: str
    """One line for a human."""
    warning: bool = False


Listener = Callable[[Notice], None]


def ignore(_: Notice) -> None:
    """The listener of those who do not care."""
