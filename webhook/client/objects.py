"""Reads single objects and whole lists as plain JSON, and writes Events."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Protocol
from urllib.parse import quote

from webhook import PROGRAM
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.connection import JSON, METADATA
from webhook.client.limits import MAX_EVENT_CHARACTERS, OBJECTS_PER_PAGE
from webhook.client.paging import pages
from webhook.client.wire import Page, PageMetadata, WatchFault

KubernetesObject = dict[str, Any]


class Caller(Protocol):
    """A Client, or a wrapper around a Client."""

    async def request(self, method: str, path: str, body: KubernetesObject | None = None, /) -> KubernetesObject:
        """Like `Client.request`."""
        ...


async def get(api: Caller, path: str) -> KubernetesObject | None:
    """The object at `path`; None if it does not exist; ClusterError without an answer."""
    try:
        document = await api.request("GET", path)
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    if not isinstance(document.get("metadata"), dict):
        raise ClusterError(f"what answers for {path} is not an API server")
    return document


async def listed(api: Client, path: str, *, metadata_only: bool = False, **query: str) -> list[KubernetesObject]:
    """Every object of a collection; ClusterError if the list is incomplete. `metadata_only` leaves out other fields."""
    accept = METADATA % "List" if metadata_only else JSON

    async def fetch(target: str) -> Page[KubernetesObject]:
        answer = await api.request("GET", target, accept=accept)
        metadata, items = answer.get("metadata") or {}, answer.get("items") or []
        is_list = str(answer.get("kind")).endswith("List") and isinstance(items, list)
        if not (is_list and isinstance(metadata, dict)):
            raise ClusterError(f"what answers at {api.host} is not an API server")
        return Page(PageMetadata(token=str(metadata.get("continue") or "")), items)

    try:
        all_pages = pages(fetch, path, limit=OBJECTS_PER_PAGE, **query)
        return [item async for page in all_pages for item in page.items or ()]
    except WatchFault:
        raise ClusterError(f"the cluster at {api.host} sends a list without end") from None


async def write_event(
    api: Caller,
    namespace: str,
    about: Mapping[str, str],
    *,
    reason: str,
    message: str,
    kind: Literal["Normal", "Warning"],
    key: str,
) -> bool:
    """Write an Event about the object `about` (apiVersion, kind, name ...); ClusterError if that fails.

    The name of the Event depends on `key`. Returns False if the Event already exists, for example from another replica.
    """
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['name'][:200]}.{digest}", "namespace": namespace},
        "involvedObject": {"namespace": namespace, **about},
        "reason": reason,
        "message": message[:MAX_EVENT_CHARACTERS],
        "type": kind,
        "source": {"component": PROGRAM},
        "reportingComponent": PROGRAM,
        "reportingInstance": PROGRAM,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    try:
        await api.request("POST", f"/api/v1/namespaces/{quote(namespace, safe='')}/events", event)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True
