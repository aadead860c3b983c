"""The read-only interface to the cluster for rules and injections.

An answer is a record, ABSENT (the object does not exist) or UNKNOWN (not synced, no permission, kind not installed). A
job is never rejected because of UNKNOWN.
"""

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any, Literal, Protocol, TypeVar, cast

from webhook.cluster.resource import ByNamespace, K, Resource, T

A = TypeVar("A")


class Answer(Enum):
    """An answer without a record."""

    ABSENT = "absent"
    UNKNOWN = "unknown"


ABSENT: Literal[Answer.ABSENT] = Answer.ABSENT
UNKNOWN: Literal[Answer.UNKNOWN] = Answer.UNKNOWN
Unknown = Literal[Answer.UNKNOWN]


class ClusterView(Protocol):
    """Queries of the cluster. Reviews share the answers: do not change them, and do not keep them after the request."""

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        """The object with this key: a name, or (namespace, name) if the resource has namespaces."""
        ...

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """All objects by key; UNKNOWN also if one object cannot be read."""
        ...

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        """All objects in the namespace by key; UNKNOWN also if one of them cannot be read."""
        ...

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """All objects by key, for each value of the resource's `group`; UNKNOWN as in `all`."""
        ...

    def not_served(self, resource: Resource[Any, Any]) -> bool:
        """Whether it is certain that the cluster does not have the kind."""
        ...


class NothingKnown:
    """A view whose answers are all UNKNOWN."""

    def get(self, *_: Any, **__: Any) -> Unknown:
        return UNKNOWN

    all = within = groups = get

    def not_served(self, _: Resource[Any, Any]) -> bool:
        return False


class ViewOf:
    """A view that changes the answers of another ClusterView."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        answer = self.view.get(resource, key)
        return self.answered(resource, answer)

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        return self.answered(resource, self.view.all(resource))

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        return self.answered(resource, self.view.within(resource, namespace))

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        return self.answered(resource, self.view.groups(resource))

    def not_served(self, resource: Resource[Any, Any]) -> bool:
        return self.view.not_served(resource)

    def answered(self, resource: Resource[Any, Any], answer: A) -> A:
        """Return the answer that replaces `answer`."""
        return answer


class NotingView(ViewOf):
    """A view that records the resources with UNKNOWN answers. The verdict reports them."""

    def __init__(self, view: ClusterView) -> None:
        super().__init__(view)
        self.unknown: set[str] = set()
        """The names of the resources."""

    def answered(self, resource: Resource[Any, Any], answer: A) -> A:
        if answer is UNKNOWN:
            self.unknown.add(resource.name)
        return answer


class Overlay(ViewOf):
    """A view that replaces some resources in one namespace.

    `replaced` has all objects of these resources in `namespace` by key, or UNKNOWN. `all` and `groups` are UNKNOWN for
    these resources.
    """

    def __init__(
        self, view: ClusterView, namespace: str, replaced: Mapping[Resource[Any, Any], Mapping[Any, Any] | Unknown]
    ) -> None:
        super().__init__(view)
        self._namespace = namespace
        self.replaced = replaced

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        namespace = cast("ByNamespace", key)[0] if resource.is_namespaced else key
        if resource not in self.replaced or namespace != self._namespace:
            return super().get(resource, key)
        objects = self.replaced[resource]
        return objects if isinstance(objects, Answer) else objects.get(key, ABSENT)

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        return UNKNOWN if resource in self.replaced else super().all(resource)

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        if resource not in self.replaced or namespace != self._namespace:
            return super().within(resource, namespace)
        return self.replaced[resource]

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        return UNKNOWN if resource in self.replaced else super().groups(resource)
