"""A cluster view as if no job existed: for the verdict on existing jobs, which must not count against themselves."""

from collections.abc import Hashable, Mapping
from typing import Any, cast

from msgspec.structs import replace

from webhook.cluster.resource import ByNamespace, K, Resource, T
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import ABSENT, Answer, ClusterView, Unknown

_TAKEN: tuple[Resource[Any, Any], ...] = (MPI_JOBS, PODS, RESERVATIONS)


class WithoutJobs:
    """A ClusterView: quotas of which nothing is used, no jobs, pods of jobs or reservations; else what `view` says."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        """The object with this key."""
        if resource in _TAKEN:
            return ABSENT
        found = self._view.get(resource, key)
        return found if isinstance(found, Answer) else self._unused(resource, found)

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """Every object there is, by key."""
        return {} if resource in _TAKEN else self._each(resource, self._view.all(resource))

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        """Every object in the namespace, by key."""
        return {} if resource in _TAKEN else self._each(resource, self._view.within(resource, namespace))

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """Every object there is, sorted by the resource's `group`."""
        if resource in _TAKEN:
            return {}
        found = self._view.groups(resource)
        if isinstance(found, Answer) or resource is not RESOURCE_QUOTAS:
            return found
        return {group: {key: self._unused(resource, each) for key, each in found[group].items()} for group in found}

    def _each(self, resource: Resource[K, T], found: Mapping[K, T] | Unknown) -> Mapping[K, T] | Unknown:
        if isinstance(found, Answer) or resource is not RESOURCE_QUOTAS:
            return found
        return {key: self._unused(resource, each) for key, each in found.items()}

    def _unused(self, resource: Resource[Any, T], record: T) -> T:
        return cast("T", replace(cast("Any", record), used={})) if resource is RESOURCE_QUOTAS else record
