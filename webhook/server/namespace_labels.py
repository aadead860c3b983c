"""Namespaces as labels of metrics, a limited number of them."""

from collections.abc import Iterable
from typing import Final

from webhook.server.limits import MAX_NAMESPACE_LABELS

BEYOND: Final = "_other"
"""The label value of all that come later; no namespace can be called that."""


class Labels:
    """The first `most` values keep their names until the process ends."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def bounded(self, value: str) -> str:
        """The value, or BEYOND where there are too many already."""
        if value not in self._known:
            if len(self._known) >= self._most:
                return BEYOND
            self._known.add(value)
        return value


def of_now(namespaces: Iterable[str]) -> Labels:
    """For gauges: the first by name of those that are there now, so replicas agree whatever each has seen before."""
    labels = Labels(MAX_NAMESPACE_LABELS)
    for each in sorted(set(namespaces)):
        labels.bounded(each)
    return labels
