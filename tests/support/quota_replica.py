"""A replica of the service in a `quota_cluster`, with a quota ledger and a delayed view of the cluster."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Raw

from tests.support.logs import Log
from tests.support.quota_cluster import EPOCH, REVIEW, TEAM, WATCHED, Cluster, Json
from tests.support.rule_checks import defaulted
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.admission.pipelines import DeadlineExceeded
from webhook.client import wire
from webhook.client.calls import ClusterError
from webhook.client.live_view import kinds
from webhook.client.store import Store
from webhook.cluster.resource import Resource, WatchedPlace
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.view import ABSENT, ClusterView
from webhook.controllers.reservations.ledger import LedgerApi, QuotaLedger
from webhook.kit.context import Context
from webhook.predict.quota.assessment import assess, reservation_of
from webhook.rules import Violation


class View:
    """A delayed view of the cluster. The changes of a kind arrive in order, some time later."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        places = {WatchedPlace.OWN: "own", WatchedPlace.KUEUE: "kueue-system"}
        self._stores = {each: Store(kinds(each, places)[0], log=Log()) for each in WATCHED}
        self._due: dict[Resource[Any, Any], float] = dict.fromkeys(WATCHED, 0.0)
        self._heard: dict[Resource[Any, Any], float] = {}
        self.stalled_until = 0.0
        cluster.watching.append(self.tell)
        for resource in WATCHED:
            for document in cluster.objects(resource):
                self._hear(resource, document, "ADDED")

    def tell(self, resource: Resource[Any, Any], document: Json, event: str) -> None:
        """Deliver the change after all earlier changes."""
        now, cluster = self._cluster.time, self._cluster
        arrives = now + cluster.random.uniform(0, cluster.weather.lag)
        if resource is MPI_JOBS:
            arrives = max(arrives, self.stalled_until)
        self._due[resource] = max(self._due[resource] + 1e-9, arrives)
        asyncio.get_running_loop().call_at(self._due[resource], self._hear, resource, document, event)

    def _hear(self, resource: Resource[Any, Any], document: Json, event: str) -> None:
        data = Raw(json.dumps(document).encode())
        metadata, store = wire.decode(wire.objects, data).metadata, self._stores[resource]
        if event == "DELETED":
            store.remove(metadata)
        else:
            store.put(metadata, data)

    def on_change(self, resource: Resource[Any, Any], callback: Callable[..., None]) -> None:
        if resource not in self._stores:
            return
        self._stores[resource].on_change(callback)
        for key, record in self._stores[resource].records.items():
            callback(key, None, record)

    def get(self, resource: Resource[Any, Any], key: Any) -> Any:
        return self._stores[resource].get(key) if resource in self._stores else ABSENT

    def all(self, resource: Resource[Any, Any]) -> Mapping[Any, Any]:
        return self._stores[resource].records if resource in self._stores else {}

    def within(self, resource: Resource[Any, Any], namespace: str) -> Mapping[Any, Any]:
        return self._stores[resource].groups.get(namespace, {}) if resource in self._stores else {}

    def groups(self, resource: Resource[Any, Any]) -> Mapping[Any, Any]:
        return self._stores[resource].groups if resource in self._stores else {}

    def not_served(self, _: Resource[Any, Any]) -> bool:
        return False

    def stall(self, seconds: float) -> None:
        """Delay all changes of jobs for this time."""
        self._heard[MPI_JOBS] = self._cluster.time
        self.stalled_until = self._cluster.time + seconds

    def silence(self, resource: Resource[Any, Any]) -> float:
        now = self._cluster.time
        return now - self._heard[resource] if resource in self._heard and now < self.stalled_until else 0.0


Moment = tuple[int, str]
"""(number of a write, one of `MOMENTS`)."""
MOMENTS = ("before", "sent", "done")
"""The write is not yet sent, is sent, or is answered."""


class Calls:
    """A replica's calls to the API server. At the moment `dies`, all calls stop and `die` is called."""

    def __init__(self, cluster: Cluster, die: Callable[[], None], *, dies: Moment | None, ahead: float) -> None:
        self._cluster = cluster
        self._die = die
        self._dies = dies
        self._ahead = ahead
        self._writes = 0
        self.list_page = cluster.list_page

    def now(self) -> float:
        """The replica's estimate of the API server's time."""
        return EPOCH + self._cluster.time + self._ahead

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        call = partial(self._cluster.request, method, path, body)
        if method not in {"PUT", "POST"}:
            return await call()
        self._writes += 1
        await self._at("before")
        if self._dies == (self._writes, "sent"):
            self._cluster.start(forgotten(call()))
            await self._at("sent")
        answer = await call()
        await self._at("done")
        return answer

    async def _at(self, moment: str) -> None:
        if self._dies == (self._writes, moment):
            self._die()
            await asyncio.Future()


async def forgotten(call: Awaitable[Any]) -> None:
    """Run the work, and discard its result."""
    with suppress(ClusterError):
        await call


class Replica:
    """A replica of the service. Its clock may be `ahead` of the API server's clock. It is killed at `dies`."""

    def __init__(self, cluster: Cluster, *, dies: Moment | None = None, ahead: float = 0.0) -> None:
        self.cluster = cluster
        self.view = View(cluster)
        self.killed = asyncio.Event()
        self.outcomes: Counter[str] = Counter()
        self.reviews: set[asyncio.Task[Any]] = set()
        calls: Any = Calls(cluster, lambda: cluster.start(self.kill()), dies=dies, ahead=ahead)
        view: Any = self.view
        leases = LedgerApi(calls, calls, "own")
        self.ledger = QuotaLedger(leases, view, log=Log(), on_outcome=lambda outcome: self.outcomes.update([outcome]))
        self._sweeping = asyncio.create_task(self.ledger.run())

    async def kill(self) -> None:
        if self.killed.is_set():
            return
        self.killed.set()
        self.cluster.watching.remove(self.view.tell)
        for task in (self._sweeping, *self.reviews):
            task.cancel()
        await self.ledger.close()

    async def review(self, job: Json, old: Json | None, *, dry_run: bool = False) -> Decision | None:
        """The verdict; None if the ledger gives none. The real service would then use its cached view."""
        decide = deciding(job, old)
        task = asyncio.create_task(self._review(decide, dry_run=dry_run))
        self.reviews.add(task)
        try:
            return await task
        except (asyncio.CancelledError, ClusterError, DeadlineExceeded):
            return None

    async def _review(self, decide: Callable[[ClusterView], Decision], *, dry_run: bool) -> Decision:
        first = decide(self.view)
        if not first.depends_on_quota:
            return first
        return await self.ledger.verdict(TEAM, decide=decide, first=first, writes=not dry_run, seconds=REVIEW)


def deciding(document: Json, before: Json | None) -> Callable[[ClusterView], Decision]:
    """A function that returns the service's verdict on a job. The verdict depends only on quotas."""
    job, old = defaulted(document), None if before is None else defaulted(before)

    def decide(view: ClusterView) -> Decision:
        ctx = Context(operation="CREATE" if old is None else "UPDATE", namespace=TEAM, old=old, view=view)
        assessment = assess(job, ctx)
        short = assessment is not None and assessment.shortages()
        denied = [Finding("resource-quota", Violation("", "full", fix=""))] if short else []
        return Decision(denied=denied, reservation=reservation_of(job, ctx))

    return decide
