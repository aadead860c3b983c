"""What every companion says of itself."""

from collections.abc import Mapping
from typing import Protocol


class Companion(Protocol):
    """Work of our own on the objects of a cluster, beside reviews."""

    name: str
    """For logs, metrics and `/readyz`."""

    @property
    def results(self) -> Mapping[str, int]:
        """How often an object was looked after, by how that ended."""
        ...

    @property
    def waiting(self) -> int:
        """Objects that should have been looked after by now."""
        ...

    @property
    def failing(self) -> int:
        """Objects that failed when they were last looked after."""
        ...

    @property
    def problem(self) -> str:
        """What is wrong, on one line for the operator; empty while nothing is."""
        ...
