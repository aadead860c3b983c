"""The cluster view of a running service, kept up to date by watches."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from math import inf
from types import MappingProxyType
from typing import Any, Final

from webhook.client.connection import Connection
from webhook.client.store import Kind, Store, by_name, by_namespace
from webhook.client.watch import Watch
from webhook.cluster.resource import ByNamespace, K, Resource, T, WatchedPlace
from webhook.cluster.resources import watched_resources
from webhook.cluster.view import UNKNOWN, Answer, Unknown

PATIENCE: Final = 30.0
"""Seconds that a new replica waits for a kind that it cannot read."""


class LiveView:
    """A ClusterView that is up to date while `run` runs.

    `places` has the names of namespaces. A resource with a `place` that is not in `places` is unknown. There is a watch
    for each version of a resource. A later version's watch starts if the API server does not serve the earlier version.
    """

    watches: tuple[Watch[Any, Any], ...]
    unknown: Counter[str]
    """The number of UNKNOWN answers so far, by the name of the resource."""

    def __init__(
        self,
        connection: Connection,
        *,
        log: Any,
        resources: Iterable[Resource[Any, Any]] | None = None,
        places: Mapping[WatchedPlace, str] = MappingProxyType({}),
        patience: float = PATIENCE,
    ) -> None:
        self._patience = patience
        resources = watched_resources() if resources is None else tuple(resources)
        self._watches: dict[Resource[Any, Any], tuple[Watch[Any, Any], ...]] = {
            resource: tuple(Watch(kind, connection, log=log) for kind in kinds(resource, places))
            for resource in resources
            if resource.place is None or resource.place in places
        }
        self.watches = tuple(watch for watches in self._watches.values() for watch in watches)
        self.unknown = Counter({resource.name: 0 for resource in resources})

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        store = self._store(resource)
        answer = UNKNOWN if store is None else store.get(key)
        return self._unknown(resource) if answer is UNKNOWN else answer

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        store = self._store(resource)
        return self._unknown(resource) if store is None or store.unreadable else store.records

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        store = self._store(resource)
        if store is None or any(key[0] == namespace for key in store.unreadable):
            return self._unknown(resource)
        return store.groups.get(namespace, {})

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        store = self._store(resource)
        return self._unknown(resource) if store is None or store.unreadable else store.groups

    def on_change(self, resource: Resource[K, T], callback: Callable[[K, T | None, T | None], None]) -> None:
        """Call `callback` with key, old and new record after each change. A missing record is None."""
        for watch in self._watches.get(resource, ()):
            watch.store.on_change(callback)

    def silence(self, resource: Resource[Any, Any]) -> float:
        """Seconds since the API server last sent something for the resource; infinite for an unknown resource."""
        return min((watch.silence for watch in self._watches.get(resource, ()) if watch.known), default=inf)

    def reason(self, resource: Resource[Any, Any]) -> str:
        """The reason why the watches of all versions fail; empty while the watch of one version works."""
        begun = [watch for watch in self._watches[resource] if watch.requests]
        return next((watch.reason for watch in begun), "") if all(watch.reason for watch in begun) else ""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for watches in self._watches.values():
                group.create_task(self._follow(watches))

    def faults(self) -> dict[str, str]:
        """The reasons why resources cannot be read, by resource name. Resources that are not installed are left out."""
        faults = {}
        for resource, watches in self._watches.items():
            faulty = [watch for watch in watches if watch.faulty]
            if faulty and not any(watch.known for watch in watches):
                faults[resource.name] = faulty[0].reason or "its first list is not complete"
        return faults

    def not_served(self, resource: Resource[Any, Any]) -> bool:
        watches = self._watches.get(resource, ())
        return bool(watches) and all(watch.not_installed for watch in watches)

    def not_installed(self) -> list[str]:
        return sorted(resource.name for resource in self._watches if self.not_served(resource))

    async def settled(self) -> None:
        """Return when each awaited resource was read or was denied in all versions, or when `patience` is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                for watches in (watches for resource, watches in self._watches.items() if resource.awaited):
                    for watch in watches:
                        await watch.settled()
                        if watch.synced:
                            break

    async def _follow(self, watches: tuple[Watch[Any, Any], ...]) -> None:
        # The watch of a version that is not served retries, because the version may be installed later.
        async with asyncio.TaskGroup() as group:
            for watch in watches:
                group.create_task(watch.run(), name=f"watch {watch.kind.name}")
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._patience):
                        await watch.settled()
                if watch.synced:
                    return

    def _store(self, resource: Resource[K, T]) -> Store[K, T] | None:
        for watch in self._watches.get(resource, ()):
            if watch.known:
                return watch.store
        return None

    def _unknown(self, resource: Resource[Any, Any]) -> Unknown:
        self.unknown[resource.name] += 1
        return UNKNOWN


def kinds(resource: Resource[K, T], places: Mapping[WatchedPlace, str]) -> list[Kind[K, T]]:
    """The collections to watch for a resource, one per version."""
    several = len(resource.api_versions) > 1
    namespace = places[resource.place] if resource.place else ""
    key: Any = by_namespace if resource.is_namespaced else by_name
    return [
        Kind(
            f"{resource.name}-{version.rpartition('/')[2]}" if several else resource.name,
            resource.path(version, namespace),
            key=key,
            project=resource.project,
            group=resource.group,
            budget=resource.budget,
            metadata_only=resource.metadata_only,
            label_selector=resource.label_selector,
            field_selector=resource.field_selector,
        )
        for version in resource.api_versions
    ]
