"""What the quota ledger reads and writes: reservations, kept in Leases, and the quotas and pods of this moment."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from webhook.admission.pipelines import DeadlineExceeded
from webhook.client.calls import ApiError, Client
from webhook.client.connection import JSON, METADATA
from webhook.client.objects import get
from webhook.cluster.group import Group
from webhook.cluster.owned import Owned
from webhook.cluster.resource import ByNamespace, Resource, T
from webhook.cluster.resources import reservations
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import Lease, LedgerEntry, Reservations
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS, ResourceQuota

# An object's annotations have room for 256 KiB (apimachinery `pkg/api/validation`, TotalAnnotationSizeLimitB).
MOST_BYTES = 250_000
_GONE_OR_CHANGED = {404, 409}


class LedgerApi:
    """Single calls, each of which raises ClusterError when it fails. The Leases are in `own_namespace`."""

    def __init__(self, api: Client, own_namespace: str, *, log: Any) -> None:
        self._api = api
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{quote(own_namespace, safe='')}/leases"
        self._log = log

    async def quotas(self, namespace: str) -> Mapping[ByNamespace, ResourceQuota]:
        """Every quota of the namespace."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/resourcequotas"
        return await self._records(RESOURCE_QUOTAS, namespace, path)

    async def pods(self, namespace: str) -> Mapping[ByNamespace, Owned]:
        """Every pod of a job in the namespace."""
        query = urlencode({"labelSelector": PODS.label_selector})
        return await self._records(PODS, namespace, f"/api/v1/namespaces/{quote(namespace, safe='')}/pods?{query}")

    async def reservations(self, namespace: str) -> Reservations:
        """What is reserved in the namespace; nothing if there is no Lease, or one that is damaged."""
        version = ""
        try:
            if found := await get(self._api, self._path(lease_name(namespace))):
                version = found["metadata"]["resourceVersion"]
                return reservations.record(msgspec.convert(found, Lease))
        except (msgspec.DecodeError, msgspec.ValidationError):
            self._log.warning("reservations are unreadable", namespace=namespace)
        return Reservations(namespace, lease_name(namespace), version, ())

    async def write(self, namespace: str, lease: Reservations, entries: Iterable[LedgerEntry]) -> bool:
        """Replace the content of `lease` by `entries`; False if somebody has written it since it was read.

        DeadlineExceeded when there is no room for all entries: the first of them end within seconds.
        """
        text = msgspec.json.encode(tuple(entries)).decode()
        if len(text) > MOST_BYTES:
            raise DeadlineExceeded(f"the reservations of {namespace} are too many at once")
        metadata: dict[str, Any] = {
            "name": lease_name(namespace),
            "labels": {reservations.LABEL: "true"},
            "annotations": {
                reservations.NAMESPACE: namespace,
                reservations.ANNOTATION: text,
            },
        }
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        try:
            if lease.version:
                metadata["resourceVersion"] = lease.version
                await self._api.request("PUT", self._path(lease_name(namespace)), body)
            else:
                await self._api.request("POST", self._leases, body)
        except ApiError as error:
            # A Lease that is not there to be created has no namespace: that is no conflict, and no second try mends it.
            if error.status == 409 or (lease.version and error.status == 404):
                return False
            raise
        return True

    async def delete(self, lease: Reservations) -> None:
        """Remove the Lease, unless somebody has written it since it was read."""
        try:
            options = {"preconditions": {"resourceVersion": lease.version}}
            await self._api.request("DELETE", self._path(lease.name), options)
        except ApiError as error:
            if error.status not in _GONE_OR_CHANGED:
                raise

    async def _records(self, resource: Resource[ByNamespace, T], namespace: str, path: str) -> Mapping[ByNamespace, T]:
        listed = await self._api.request("GET", path, accept=METADATA % "List" if resource.metadata_only else JSON)
        records: Group[ByNamespace, T] = Group()
        for item in listed.get("items") or ():
            record = resource.project(msgspec.json.encode(item))
            if record is not None:
                records.put((namespace, str(item["metadata"]["name"])), record)
        return records

    def _path(self, name: str) -> str:
        return f"{self._leases}/{quote(name, safe='')}"


def lease_name(namespace: str) -> str:
    """The name of the Lease for `namespace`."""
    return f"quota-{namespace}"
