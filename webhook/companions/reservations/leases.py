"""What the quota ledger reads and writes: reservations, kept in Leases, and the quotas and pods of this moment."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec

from webhook.client import wire
from webhook.client.calls import MERGE_PATCH, ApiError, Client, ClusterError
from webhook.client.connection import Connection
from webhook.client.objects import get
from webhook.client.paging import pages, slices
from webhook.client.wire import WatchFault
from webhook.cluster.group import Group
from webhook.cluster.owned import Owned
from webhook.cluster.resource import ByNamespace, Resource, T
from webhook.cluster.resources import reservations
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import Lease, Reservations
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS, ResourceQuota

PAGE = 500
ATTEMPTS = 3  # somebody else may create the Lease, or remove it, at the same moment
_GONE_OR_CHANGED = {404, 409}


class LedgerApi:
    """Single calls, each of which raises ClusterError when it fails. The Leases are in `own_namespace`."""

    def __init__(self, api: Client, connection: Connection, own_namespace: str, *, log: Any) -> None:
        self._api = api
        self._connection = connection
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{quote(own_namespace, safe='')}/leases"
        self._log = log

    async def quotas(self, namespace: str) -> Mapping[ByNamespace, ResourceQuota]:
        """Every quota of the namespace."""
        return await self._records(RESOURCE_QUOTAS, namespace)

    async def pods(self, namespace: str) -> Mapping[ByNamespace, Owned]:
        """Every pod of a job in the namespace."""
        return await self._records(PODS, namespace)

    async def jobs(self, namespace: str) -> Mapping[ByNamespace, MPIJobRecord]:
        """Every MPIJob in the namespace that is not over."""
        return await self._records(MPI_JOBS, namespace)

    async def how_many_jobs(self, namespace: str) -> int | None:
        """How many MPIJobs there are in the namespace; None where the API server does not say."""
        path = MPI_JOBS.path(MPI_JOBS.api_versions[0], quote(namespace, safe=""))
        listed = await self._api.request("GET", f"{path}?limit=1")
        metadata, items = listed.get("metadata") or {}, listed.get("items") or []
        if not metadata.get("continue"):
            return len(items)
        remaining = metadata.get("remainingItemCount")
        return len(items) + remaining if isinstance(remaining, int) else None

    async def reservations(self, namespace: str) -> Reservations:
        """What is reserved in the namespace; nothing if there is no Lease."""
        found = await get(self._api, self._path(lease_name(namespace)))
        return self._read(namespace, found) if found is not None else _nothing(namespace)

    async def announce(self, namespace: str, replica: str, text: str, *, over: Iterable[str] = ()) -> Reservations:
        """Write what `replica` reserves in the namespace; returns what all replicas do, at the moment of this write.

        What is under the names in `over` is removed.

        Whoever writes later gets this as well. So of two replicas that write at the same time one knows of the other.
        """
        name = lease_name(namespace)
        annotations = {reservations.NAMESPACE: namespace, reservations.PREFIX + replica: text}
        metadata = {"labels": {reservations.LABEL: "true"}, "annotations": annotations}
        whole = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, **metadata}}
        gone = {reservations.PREFIX + each: None for each in over}
        patch = {"metadata": {**metadata, "annotations": {**annotations, **gone}}}
        for attempt in range(ATTEMPTS):
            try:
                return self._read(namespace, await self._patched_or_created(name, patch, whole))
            except ApiError as error:
                if error.status != 409 or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError

    async def drop(self, lease: Reservations, replicas: Iterable[str]) -> None:
        """Remove what these replicas reserved, unless somebody has written the Lease since it was read."""
        gone: dict[str, None] = {reservations.PREFIX + replica: None for replica in replicas}
        metadata = {"resourceVersion": lease.version, "annotations": gone}
        try:
            await self._api.request("PATCH", self._path(lease.name), {"metadata": metadata}, patch=MERGE_PATCH)
        except ApiError as error:
            if error.status not in _GONE_OR_CHANGED:
                raise

    async def delete(self, lease: Reservations) -> None:
        """Remove the Lease, unless somebody has written it since it was read."""
        try:
            options = {"preconditions": {"resourceVersion": lease.version}}
            await self._api.request("DELETE", self._path(lease.name), options)
        except ApiError as error:
            if error.status not in _GONE_OR_CHANGED:
                raise

    async def _records(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T]:
        """What is in the namespace now; other reviews go on in between."""
        fetch = partial(self._connection.list_page, metadata_only=resource.metadata_only)
        path = resource.path(resource.api_versions[0], quote(namespace, safe=""))
        records: Group[ByNamespace, T] = Group()
        try:
            async for page in pages(fetch, path, limit=PAGE, labelSelector=resource.label_selector):
                for some in slices(page.items or ()):
                    for data in some:
                        record = resource.project(data)
                        if record is not None and (resource.group is None or resource.group(record) is not None):
                            records.put((namespace, wire.decode(wire.objects, data).metadata.name), record)
                    await asyncio.sleep(0)
        except WatchFault as fault:
            raise ClusterError(f"cannot list {resource.plural}: {fault}") from None
        except (msgspec.DecodeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ClusterError(f"cannot read all {resource.plural}: {type(error).__name__}") from None
        return records

    async def _patched_or_created(self, name: str, patch: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
        try:
            # Without a resourceVersion: it changes one annotation, whatever others write.
            return await self._api.request("PATCH", self._path(name), patch, patch=MERGE_PATCH)
        except ApiError as error:
            if error.status != 404:
                raise
        return await self._api.request("POST", self._leases, whole)

    def _read(self, namespace: str, found: Any) -> Reservations:
        stored = reservations.record(msgspec.convert(found, Lease))
        if any(part.damaged for part in stored.parts.values()):
            self._log.warning("reservations are unreadable", namespace=namespace)
        return stored

    def _path(self, name: str) -> str:
        return f"{self._leases}/{quote(name, safe='')}"


def _nothing(namespace: str) -> Reservations:
    return Reservations(namespace, lease_name(namespace), "", ())


def lease_name(namespace: str) -> str:
    """The name of the Lease for `namespace`."""
    return f"quota-{namespace}"
