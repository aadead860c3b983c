"""What the quota ledger reads and writes: reservations, kept in Leases, and the objects of a namespace at this moment.

Every call raises ClusterError when it fails.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from urllib.parse import quote

import msgspec

from webhook.client import wire
from webhook.client.calls import Client, ClusterError
from webhook.client.connection import Connection
from webhook.client.limits import OBJECTS_PER_PAGE
from webhook.client.objects import get
from webhook.client.paging import pages, slices
from webhook.client.wire import WatchFault
from webhook.cluster.group import Group
from webhook.cluster.resource import ByNamespace, Resource, T
from webhook.cluster.resources import reservations
from webhook.cluster.resources.reservations import Lease, LedgerEntry, Reservations


class LedgerApi:
    """The Leases are in `own_namespace`."""

    def __init__(self, api: Client, connection: Connection, own_namespace: str) -> None:
        self._api = api
        self._connection = connection
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{quote(own_namespace, safe='')}/leases"
        self.now = api.now

    async def reservations(self, namespace: str) -> Reservations:
        """What is reserved in the namespace."""
        name = f"quota-{namespace}"
        found = await get(self._api, f"{self._leases}/{quote(name, safe='')}")
        if found is None:
            return Reservations(namespace, name, "", ())
        return reservations.record(msgspec.convert(found, Lease))

    async def write(self, lease: Reservations, entries: Iterable[LedgerEntry]) -> list[str]:
        """Write these entries into the Lease that was read; returns the names of jobs that did not fit.

        ApiError 409 where the Lease was written, or created, since.
        """
        body, left_out = reservations.manifest(lease, entries)
        method, path = ("PUT", f"/{quote(lease.name, safe='')}") if lease.version else ("POST", "")
        await self._api.request(method, self._leases + path, body)
        return left_out

    async def delete(self, lease: Reservations) -> None:
        """Remove the Lease; ApiError 404 or 409 where it was removed or written since it was read."""
        options = {"preconditions": {"resourceVersion": lease.version}}
        await self._api.request("DELETE", f"{self._leases}/{quote(lease.name, safe='')}", options)

    async def records(self, resource: Resource[ByNamespace, T], namespace: str) -> Group[ByNamespace, T]:
        """The objects in the namespace now. Other reviews go on in between."""
        fetch = partial(self._connection.list_page, metadata_only=resource.metadata_only)
        path = resource.path(resource.api_versions[0], quote(namespace, safe=""))
        records: Group[ByNamespace, T] = Group()
        try:
            async for page in pages(fetch, path, limit=OBJECTS_PER_PAGE, labelSelector=resource.label_selector):
                for some in slices(page.items or ()):
                    for data in some:
                        record = resource.project(data)
                        if record is not None and (resource.group is None or resource.group(record) is not None):
                            records.put((namespace, wire.decode(wire.objects, data).metadata.name), record)
                    await asyncio.sleep(0)
        except (WatchFault, msgspec.DecodeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ClusterError(f"cannot list {resource.plural}: {type(error).__name__} {error}") from None
        return records
