"""The read-only interface to the cluster that rules and injections see.

Every answer is a record, ABSENT (it is known not to exist) or UNKNOWN (not synced, no permission, kind not installed).
Unknown never denies.
"""

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any, Literal, Protocol

from webhook.cluster.resource import ByNamespace, K, Resource, T


class Answer(Enum):
    """An answer without a record."""

    ABSENT = "absent"
    UNKNOWN = "unknown"


ABSENT: Literal[Answer.ABSENT] = Answer.ABSENT
UNKNOWN: Literal[Answer.UNKNOWN] = Answer.UNKNOWN
Unknown = Literal[Answer.UNKNOWN]


class ClusterView(Protocol):
    """What can be asked. Answers are shared: do not change them, and do not keep them beyond the request."""

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        """The object with this key: a name, or (namespace, name) where the resource has namespaces."""
        ...

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """Every object there is, by key. UNKNOWN also when there is one that cannot be read."""
        ...

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        """Every object in the namespace, by key. UNKNOWN also when there is one that cannot be read."""
        ...

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """Every object there is, sorted by the resource's `group`; no group is empty. UNKNOWN as in `all`."""
        ...


class NothingKnown:
    """The view of a service that watches nothing: every answer is UNKNOWN."""

    def get(self, resource: Resource[K, T], key: K) -> Unknown:
        """No object is known, nor that it is absent."""
        return UNKNOWN

    def all(self, resource: Resource[Any, Any]) -> Unknown:
        """The list is not known."""
        return UNKNOWN

    def within(self, resource: Resource[ByNamespace, Any], namespace: str) -> Unknown:
        """The list is not known in any namespace."""
        return UNKNOWN

    def groups(self, resource: Resource[Any, Any]) -> Unknown:
        """No group is known."""
        return UNKNOWN
