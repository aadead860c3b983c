"""An API server in memory, and caches that follow it, for tests of controllers without a network."""

import asyncio
import copy
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from tests.support.logs import Log
from tests.support.watch_api import until
from webhook.client.calls import ApiError
from webhook.client.live_view import LiveView
from webhook.client.store import Kind
from webhook.client.watch import Watch
from webhook.client.wire import Metadata, Page, PageMetadata, WatchFault
from webhook.cluster.resource import Resource
from webhook.controllers.reconciler import Reconciler


class KeptObjects:
    """Objects by path. Watches get every change at once or, if `late` is set, when `catch_up` is called.

    The function `before` is called with method and path before each request. It may change objects or raise an error.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str]] = []
        self.before: Callable[[str, str], None] = lambda *_: None
        self.late = False
        self._missed: list[Callable[[], None]] = []
        self._followers: list[tuple[str, Watch[Any, Any]]] = []

    def follow(self, kind: Kind[Any, Any]) -> Watch[Any, Any]:
        """A watch that has read the whole collection."""
        nothing: Any = None
        watch = Watch(kind, nothing, log=Log())
        self._fill(kind.path.rpartition("/")[2], watch)
        return watch

    def view(self, resources: Iterable[Resource[Any, Any]]) -> LiveView:
        nothing: Any = None
        view = LiveView(nothing, log=Log(), resources=resources)
        for watch in view.watches:
            self._fill(watch.kind.path.rpartition("/")[2], watch)
        return view

    def put(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """Store or replace an object, like a foreign client."""
        namespace = path.split("/namespaces/")[1].split("/", maxsplit=1)[0] if "/namespaces/" in path else ""
        name = path.rpartition("/")[2]
        metadata = {"uid": str(uuid4()), **document["metadata"], "name": name, "resourceVersion": "1"}
        if namespace and "/" in path.split("/namespaces/")[1]:
            metadata["namespace"] = namespace
        self.objects[path] = {**copy.deepcopy(document), "metadata": metadata}
        self._tell(path, self.objects[path], gone=False)
        return self.objects[path]

    def remove(self, path: str) -> None:
        """Delete an object, like a foreign client."""
        self._tell(path, self.objects.pop(path), gone=True)

    def catch_up(self) -> None:
        """Deliver the delayed changes. Later changes are delivered at once."""
        self.late = False
        while self._missed:
            self._missed.pop(0)()

    def writes(self) -> list[tuple[str, str]]:
        """The calls that change objects."""
        return [call for call in self.calls if call[0] != "GET"]

    def named(self, plural: str) -> dict[str, dict[str, Any]]:
        objects = {path: document for path, document in self.objects.items() if path.split("/")[-2] == plural}
        return {path.rpartition("/")[2]: document for path, document in objects.items()}

    async def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Handle a request of a controller, with the interface of the service's `Client.request`."""
        path = urlsplit(path).path
        self.calls.append((method, path))
        await asyncio.sleep(0)
        self.before(method, path)
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                raise ApiError(409, "already exists")
            return copy.deepcopy(self.put(path, body))
        if method == "PATCH" and path not in self.objects and "uid" not in body["metadata"]:
            return copy.deepcopy(self.put(path, body))
        if path not in self.objects:
            raise ApiError(409 if method == "PATCH" else 404, "not found")
        stored = self.objects[path]
        if method == "DELETE":
            self.remove(path)
        if method == "PATCH":
            if body["metadata"].get("uid", stored["metadata"]["uid"]) != stored["metadata"]["uid"]:
                raise ApiError(409, "uid mismatch")
            labels = {**(stored["metadata"].get("labels") or {}), **body["metadata"]["labels"]}
            stored = self.put(
                path, {**stored, **body, "metadata": {**stored["metadata"], **body["metadata"], "labels": labels}}
            )
        return copy.deepcopy(stored)

    def _fill(self, plural: str, watch: Watch[Any, Any]) -> None:
        self._followers.append((plural, watch))
        watch.synced = True
        watch._settled.set()
        watch._touch()
        for path, document in self.objects.items():
            if path.split("/")[-2] == plural:
                self._hand_over(watch, document, gone=False)

    def _tell(self, path: str, document: dict[str, Any], *, gone: bool) -> None:
        for plural, watch in self._followers:
            if path.split("/")[-2] == plural:
                document = copy.deepcopy(document)
                self._missed.append(lambda watch=watch, document=document: self._hand_over(watch, document, gone=gone))
        if not self.late:
            self.catch_up()

    def _hand_over(self, watch: Watch[Any, Any], document: dict[str, Any], *, gone: bool) -> None:
        metadata = msgspec.convert(document["metadata"], Metadata)
        label = watch.kind.label_selector
        if gone or (label and label not in (document["metadata"].get("labels") or {})):
            watch.store.remove(metadata)
        else:
            watch.store.put(metadata, msgspec.Raw(msgspec.json.encode(document)))


class JobLists:
    """Lists MPIJobs in pages of two. All pages show the objects of the first call. `faults` are raised first."""

    def __init__(self, cluster: KeptObjects) -> None:
        self.cluster = cluster
        self.targets: list[str] = []
        self.faults: list[WatchFault] = []
        self.moment: list[dict[str, Any]] = []

    async def list_page(self, target: str) -> Page[msgspec.Raw]:
        self.targets.append(target)
        if self.faults:
            raise self.faults.pop(0)
        await asyncio.sleep(0)
        if "continue=" not in target:
            self.moment = list(self.cluster.named("mpijobs").values())
        start = int(target.rpartition("continue=")[2]) if "continue=" in target else 0
        items = [msgspec.Raw(msgspec.json.encode(job)) for job in self.moment[start : start + 2]]
        more = str(start + 2) if start + 2 < len(self.moment) else ""
        return Page(PageMetadata("7", more), items)


async def settled(reconciler: Reconciler[Any]) -> None:
    """Wait until no work is left."""
    for _ in range(20):
        await asyncio.sleep(0)
    await until(lambda: not reconciler.waiting)
