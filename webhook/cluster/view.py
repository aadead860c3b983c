"""The read-only interface to the cluster for rules and injections.

An answer is a record, ABSENT (the object does not exist) or UNKNOWN (not synced, no permission, kind not installed).
Nothing is denied because of UNKNOWN.
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
    """Queries of the cluster. Answers are shared: do not change them, and do not store them after the request."""

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        """The object with this key: a name, or (namespace, name) if the resource has namespaces."""
        ...

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """All objects by key; UNKNOWN also if one object cannot be read."""
        ...

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        """All objects in the namespace by key; UNKNOWN also if one object cannot be read."""
        ...

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """All objects by the resource's `group`, without empty groups; UNKNOWN as in `all`."""
        ...

    def not_served(self, resource: Resource[Any, Any]) -> bool:
        """Whether the API server certainly lacks the kind, which means that the kind's controller is not installed."""
        ...


class NothingKnown:
    """The view of a service without watches: every answer is UNKNOWN."""

    def get(self, *_: Any, **__: Any) -> Unknown:
        return UNKNOWN

    all = within = groups = get

    def not_served(self, _: Resource[Any, Any]) -> bool:
        return False


class ViewOf:
    """Passes each answer of another ClusterView through `answered`."""

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
        """The answer that replaces this answer."""
        return answer


class NotingView(ViewOf):
    """Passes queries to another view, and records the resources that are UNKNOWN there. The verdict reports them."""

    def __init__(self, view: ClusterView) -> None:
        super().__init__(view)
        self.unknown: set[str] = set()
        """The names of resources with an UNKNOWN answer."""

    def answered(self, resource: Resource[Any, Any], answer: A) -> A:
        """The answer, recorded if it is UNKNOWN."""
        if answer is UNKNOWN:
            self.unknown.add(resource.name)
        return answer


class Overlay(ViewOf):
    """A view with newer data for some resources in a namespace.

    Queries of the resources in `known` in `namespace` are answered from `known`, all other queries from `view`. For
    each resource `known` has all objects in the namespace by key, or UNKNOWN.
    """

    def __init__(
        self, view: ClusterView, namespace: str, known: Mapping[Resource[Any, Any], Mapping[Any, Any] | Unknown]
    ) -> None:
        super().__init__(view)
        self._namespace = namespace
        self.known = known

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        within = cast("ByNamespace", key)[0] if resource.is_namespaced else key
        if resource not in self.known or within != self._namespace:
            return super().get(resource, key)
        objects = self.known[resource]
        return objects if isinstance(objects, Answer) else objects.get(key, ABSENT)

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """UNKNOWN for resources that the overlay replaces."""
        return UNKNOWN if resource in self.known else super().all(resource)

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        if resource not in self.known or namespace != self._namespace:
            return super().within(resource, namespace)
        return self.known[resource]

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """UNKNOWN for resources that the overlay replaces."""
        return UNKNOWN if resource in self.known else super().groups(resource)
