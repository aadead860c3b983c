"""A cluster view in which a namespace, or some resources in it, are more up to date."""

from collections.abc import Hashable, Mapping
from typing import Any, cast

from webhook.cluster.resource import ByNamespace, K, Resource, T
from webhook.cluster.view import ABSENT, UNKNOWN, Answer, ClusterView, Unknown


class Overlay:
    """A ClusterView: for `namespace` what `known` says of the resources in it, for all else `view`.

    `known` has, for each of those resources, every object in the namespace by its key, or UNKNOWN.
    """

    def __init__(
        self, view: ClusterView, namespace: str, known: Mapping[Resource[Any, Any], Mapping[Any, Any] | Unknown]
    ) -> None:
        self._view = view
        self._namespace = namespace
        self.known = known

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        """The object with this key."""
        within = cast("ByNamespace", key)[0] if resource.is_namespaced else key
        if resource not in self.known or within != self._namespace:
            return self._view.get(resource, key)
        objects = self.known[resource]
        return objects if isinstance(objects, Answer) else objects.get(key, ABSENT)

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """Every object there is. UNKNOWN for resources that the overlay replaces."""
        return UNKNOWN if resource in self.known else self._view.all(resource)

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        """Every object in the namespace, by key."""
        if resource not in self.known or namespace != self._namespace:
            return self._view.within(resource, namespace)
        return self.known[resource]

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """Every object there is, sorted. UNKNOWN for resources that the overlay replaces."""
        return UNKNOWN if resource in self.known else self._view.groups(resource)
