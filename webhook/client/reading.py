"""Reads a whole cluster once, for commands. Only the fields that rules use are kept."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import msgspec

from webhook.client import wire
from webhook.client.calls import Client, ClusterError
from webhook.client.connection import Connection
from webhook.client.limits import MAX_READ_ATTEMPTS, SNAPSHOT_OBJECTS_PER_PAGE
from webhook.client.objects import KubernetesObject
from webhook.client.paging import pages
from webhook.client.wire import FaultReason, WatchFault
from webhook.cluster.resource import Resource, WatchedPlace
from webhook.cluster.resources import watched_resources
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.snapshot import NOT_INSTALLED, Extent, Head

PAUSE: Final = 1.0
RETRIED: Final = {
    FaultReason.EXPIRED,
    FaultReason.THROTTLED,
    FaultReason.SERVER_ERROR,
    FaultReason.STALLED,
    FaultReason.CUT,
}
ALL: Final = ""
"""All namespaces."""


@dataclass(slots=True)
class Reading:
    """The result of `read`."""

    head: Head = field(default_factory=Head)
    problems: list[str] = field(default_factory=list)
    """A line for each unreadable resource or object."""
    _objects: dict[tuple[str, str, str], KubernetesObject] = field(default_factory=dict)

    def add(self, document: KubernetesObject) -> None:
        """Add an object, or the fields of an object that another resource has added."""
        metadata = document["metadata"]
        key = document["kind"], metadata.get("namespace", ""), metadata["name"]
        self._objects[key] = _merged(self._objects.get(key, {}), document)

    def documents(self) -> list[KubernetesObject]:
        """The documents of a snapshot file, in a fixed order."""
        return [self.head.document(), *(self._objects[key] for key in sorted(self._objects))]


async def read(
    api: Client,
    *,
    places: Mapping[WatchedPlace, str],
    namespaces: Sequence[str] = (),
    more: Mapping[str, Callable[[KubernetesObject], KubernetesObject]] = MappingProxyType({}),
    resources: Collection[Resource[Any, Any]] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> Reading:
    """Read the objects of all watched resources, or of `resources`; ClusterError if the API server cannot be used.

    Without `namespaces`, all namespaces are read. A resource with a `place` is read only if `places` has the name of
    its namespace. `more` has a function per kind that returns additional fields to keep. If the function raises an
    error, the object is unreadable. `tell` receives a line for each resource.
    """
    reader = _Reader(Connection(api.raw, renew=api.renew), more, tell)
    for resource in resources or watched_resources():
        if resource.place is None:
            selected = list(namespaces) if resource.is_namespaced or resource is NAMESPACES else []
        elif resource.place in places:
            selected = [places[resource.place]]
        else:
            continue
        try:
            await reader.read(resource, selected or [ALL])
        except WatchFault as fault:
            raise ClusterError(f"cannot read {resource.plural} from {api.host}: {fault}") from None
    return reader.reading


@dataclass(slots=True)
class _Reader:
    connection: Connection
    more: Mapping[str, Callable[[KubernetesObject], KubernetesObject]]
    tell: Callable[[str], None]
    reading: Reading = field(default_factory=Reading)

    async def read(self, resource: Resource[Any, Any], namespaces: Sequence[str]) -> None:
        """Read a resource in each namespace; WatchFault if the API server cannot be used."""
        head = self.reading.head
        extent = Extent(None if namespaces == [ALL] else [])
        count = 0
        for namespace in namespaces:
            try:
                objects = await _objects(self.connection, resource, namespace)
            except WatchFault as fault:
                self._unknown(f"{resource.name} in {namespace}" if namespace else resource.name, fault)
                continue
            for data in objects:
                self._keep(resource, data, extent)
            count += len(objects)
            if extent.namespaces is not None:
                extent.namespaces.append(namespace)
            head.known[resource.name] = extent
        if resource.name in head.known:
            self.tell(f"{resource.name}: {count:,}")

    def _unknown(self, place: str, fault: WatchFault) -> None:
        if fault.reason in {FaultReason.UNREACHABLE, FaultReason.UNAUTHORIZED}:
            raise fault
        if fault.reason is FaultReason.NOT_FOUND:
            self.reading.head.unknown[place] = NOT_INSTALLED
            self.tell(f"{place}: {NOT_INSTALLED}")
        else:
            self.reading.head.unknown[place] = str(fault)
            self.reading.problems.append(f"no information about {place}: {fault}")

    def _keep(self, resource: Resource[Any, Any], data: msgspec.Raw, extent: Extent) -> None:
        metadata = wire.decode(wire.objects, data).metadata
        try:
            if resource.project(data) is None:
                return  # the resource ignores this object
            document = msgspec.json.decode(data)
            trimmed = resource.trim(document)
            if resource.kind in self.more:
                trimmed = _merged(trimmed, self.more[resource.kind](document))
        except Exception as error:  # noqa: BLE001 - one broken object must not hide the others
            name = f"{metadata.namespace}/{metadata.name}" if resource.is_namespaced else metadata.name
            extent.unreadable.append(name)
            self.reading.problems.append(f"{resource.kind} {name} cannot be read: {type(error).__name__}")
        else:
            self.reading.add(trimmed)


async def _objects(connection: Connection, resource: Resource[Any, Any], namespace: str) -> list[msgspec.Raw]:
    """The objects of the first version that is served; WatchFault with NOT_FOUND if no version is served."""
    for attempt in range(1, MAX_READ_ATTEMPTS + 1):
        try:
            if resource is NAMESPACES and namespace:
                return await _namespace(connection, namespace)
            return await _served(connection, resource, namespace)
        except WatchFault as fault:
            if fault.reason not in RETRIED or attempt == MAX_READ_ATTEMPTS:
                raise
            await asyncio.sleep(max(PAUSE, fault.retry_after))
    raise AssertionError("the last attempt returns or raises")


async def _namespace(connection: Connection, name: str) -> list[msgspec.Raw]:
    # A user who has rights only in one namespace cannot list namespaces.
    try:
        return [msgspec.Raw(await connection.page(f"{NAMESPACES.path('v1')}/{quote(name, safe='')}"))]
    except WatchFault as fault:
        if fault.reason is FaultReason.NOT_FOUND:
            return []
        raise


async def _served(connection: Connection, resource: Resource[Any, Any], namespace: str) -> list[msgspec.Raw]:
    *before, last = resource.api_versions
    for version in before:
        try:
            return await _all(connection, resource, version, namespace)
        except WatchFault as fault:
            if fault.reason is not FaultReason.NOT_FOUND:
                raise
    return await _all(connection, resource, last, namespace)


async def _all(connection: Connection, resource: Resource[Any, Any], version: str, namespace: str) -> list[msgspec.Raw]:
    read_pages = pages(
        partial(connection.list_page, metadata_only=resource.metadata_only),
        resource.path(version, quote(namespace, safe="")),
        limit=SNAPSHOT_OBJECTS_PER_PAGE,
        labelSelector=resource.label_selector,
        fieldSelector=resource.field_selector,
    )
    return [item async for page in read_pages for item in page.items or ()]


def _merged(before: KubernetesObject, after: KubernetesObject) -> KubernetesObject:
    """Merge mappings at every level. Values of `after` win."""
    merged = dict(before)
    for key, value in after.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
