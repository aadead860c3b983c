"""Reports about changes and problems of certificates."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """A change or a problem, reported once."""

    reason: str
    """In the form of a Kubernetes Event's reason, such as `CAPromoted`."""
    message: str
    warning: bool = False


Listener = Callable[[Notice], None]


def ignore(_: Notice) -> None:
    """A listener that discards notices."""
