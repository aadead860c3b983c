"""A view that notes what it could not answer: the verdict does without it, and whoever reads the verdict is told."""

from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

from webhook.cluster.resource import ByNamespace, K, Resource, T
from webhook.cluster.view import UNKNOWN, Answer, ClusterView, Unknown

A = TypeVar("A")


class NotingView:
    """A ClusterView that answers as `view` does."""

    unknown: set[str]
    """The names of resources of which something was asked that is not known."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.unknown = set()

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        """The object with this key."""
        answer = self._view.get(resource, key)
        return self._noted(resource, answer)

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """Every object there is, by key."""
        return self._noted(resource, self._view.all(resource))

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        """Every object in the namespace, by key."""
        return self._noted(resource, self._view.within(resource, namespace))

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """Every object there is, sorted by the resource's `group`."""
        return self._noted(resource, self._view.groups(resource))

    def _noted(self, resource: Resource[Any, Any], answer: A) -> A:
        if answer is UNKNOWN:
            self.unknown.add(resource.name)
        return answer
