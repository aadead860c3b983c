"""A view that notes what it could not answer: the verdict does without it, and whoever reads the verdict is told."""

from collections.abc import Hashable, Mapping
from typing import Any

from webhook.cluster.resource import ByNamespace, K, Resource, T
from webhook.cluster.view import UNKNOWN, Answer, ClusterView, Unknown


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
        self._note(resource, answer)
        return answer

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """Every object there is, by key."""
        answer = self._view.all(resource)
        self._note(resource, answer)
        return answer

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        """Every object in the namespace, by key."""
        answer = self._view.within(resource, namespace)
        self._note(resource, answer)
        return answer

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """Every object there is, sorted by the resource's `group`."""
        answer = self._view.groups(resource)
        self._note(resource, answer)
        return answer

    def _note(self, resource: Resource[Any, Any], answer: object) -> None:
        if answer is UNKNOWN:
            self.unknown.add(resource.name)
