"""Limits the number of namespaces that are labels of metrics."""

from collections.abc import Iterable
from typing import Final

from webhook.server.limits import MAX_NAMESPACE_LABELS

BEYOND: Final = "_other"
"""The label value of all further namespaces. It is not a valid name of a namespace."""


class Labels:
    """The first `most` values are labels until the process ends."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def bounded(self, value: str) -> str:
        """The value, or BEYOND if there are already too many values."""
        if value not in self._known:
            if len(self._known) >= self._most:
                return BEYOND
            self._known.add(value)
        return value


def of_now(namespaces: Iterable[str]) -> Labels:
    """The first existing values by name, for gauges. All replicas choose the same values."""
    labels = Labels(MAX_NAMESPACE_LABELS)
    for each in sorted(set(namespaces)):
        labels.bounded(each)
    return labels
