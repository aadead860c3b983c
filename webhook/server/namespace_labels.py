"""Limits the number of different namespaces in the labels of metrics."""

from collections.abc import Iterable
from typing import Final

from webhook.server.limits import MAX_NAMESPACE_LABELS

BEYOND: Final = "_other"
"""The label value of all further namespaces. It is not a valid name of a namespace."""


class Labels:
    """Accepts the first `maximum` values as label values until the process ends."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._values: set[str] = set()

    def bounded(self, value: str) -> str:
        """The value, or BEYOND if there are too many values."""
        if value not in self._values:
            if len(self._values) >= self._maximum:
                return BEYOND
            self._values.add(value)
        return value


def of_now(namespaces: Iterable[str]) -> Labels:
    """Labels for gauges: the first of these namespaces in alphabetical order. All replicas choose the same labels."""
    labels = Labels(MAX_NAMESPACE_LABELS)
    for namespace in sorted(set(namespaces)):
        labels.bounded(namespace)
    return labels
