"""The quota ledger, which stores reservations of jobs in Leases, and an API server that fails or hangs on demand."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

from msgspec import Raw

from tests.support.logs import Log
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.client.calls import ApiError
from webhook.client.wire import Page, PageMetadata
from webhook.cluster.resource import Resource
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS, Reservation
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView, NothingKnown
from webhook.controllers.reservations.ledger import LedgerApi, QuotaLedger
from webhook.rules import Violation

LEASES = "/apis/coordination.k8s.io/v1/namespaces/own/leases"
LEASE = f"{LEASES}/quota-team"
HOLDS = 3


class Api:
    """Stores Leases with resource versions. The first writes fail, each with one of `faults`."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.leases: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self.version = 0
        self.before_write: Callable[[], None] = lambda: None
        self.after_write: Callable[[], Awaitable[None]] | None = None
        self.slow = 0.0
        self.listed: list[str] = []
        self.time = 1_000_000.0
        self.objects: dict[str, list[dict[str, Any]]] = {}
        self.before_list: Callable[[str], None] = lambda _: None

    async def request(self, method: str, path: str, body: Any = None, **_: str) -> dict[str, Any]:
        await asyncio.sleep(self.slow)
        if method == "GET":
            if path not in self.leases:
                raise ApiError(404, "not found")
            return self.leases[path]
        if method == "DELETE":
            if self.leases[path]["metadata"]["resourceVersion"] != body["preconditions"]["resourceVersion"]:
                raise ApiError(409, "changed")
            return self.leases.pop(path)
        self.before_write()
        if self.faults:
            raise self.faults.pop(0)
        if method == "POST":
            path += "/" + body["metadata"]["name"]
        else:
            assert method == "PUT"
        stored = self.leases.get(path, {"metadata": {"resourceVersion": ""}})
        if body["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise ApiError(409, "changed")
        answer = self.store(path, body)
        if self.after_write is not None:
            asyncio.get_running_loop().call_soon(asyncio.ensure_future, self.after_write())
            await asyncio.sleep(1)
        return answer

    def now(self) -> float:
        return self.time

    async def list_page(self, target: str, *, metadata_only: bool = False) -> Page[Raw]:
        await asyncio.sleep(self.slow)
        self.listed.append(target)
        plural = target.partition("?")[0].rsplit("/", 1)[-1]
        self.before_list(plural)
        return Page(
            PageMetadata("7"), [Raw(json.dumps(document).encode()) for document in self.objects.get(plural, ())]
        )

    def store(self, key: str, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.writes += 1
        metadata = {"namespace": "own", **body["metadata"], "resourceVersion": str(self.version)}
        self.leases[key] = {**body, "metadata": metadata}
        return self.leases[key]


class View(NothingKnown):
    """A view with the Leases of `api` and the test's jobs, without pods. The test calls the listeners."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.silent: dict[Resource[Any, Any], float] = {PODS: inf, RESOURCE_QUOTAS: inf}
        self.quotas: dict[tuple[str, str], Any] = {}
        self.jobs: dict[tuple[str, str], MPIJobRecord] = {}
        self.listeners: dict[Resource[Any, Any], Callable[..., None]] = {}

    def on_change(self, resource: Resource[Any, Any], callback: Callable[..., None]) -> None:
        self.listeners[resource] = callback

    def within(self, resource: Resource[Any, Any], namespace: str) -> Any:
        if resource is MPI_JOBS:
            return {key: job for key, job in self.jobs.items() if key[0] == namespace}
        if resource is RESOURCE_QUOTAS:
            return self.quotas
        return {} if resource is PODS else UNKNOWN

    def get(self, resource: Resource[Any, Any], key: Any) -> Any:
        return self.jobs.get(key, ABSENT) if resource is MPI_JOBS else UNKNOWN

    def silence(self, resource: Resource[Any, Any]) -> float:
        return self.silent.get(resource, 0.0)

    def all(self, resource: Resource[Any, Any]) -> Any:
        if resource is MPI_JOBS:
            return self.jobs
        return {key: RESERVATIONS.project(json.dumps(lease).encode()) for key, lease in self._api.leases.items()}


class World:
    def __init__(self, *faults: Exception) -> None:
        self.api = Api(*faults)
        self.view = View(self.api)
        self.log = Log()
        self.outcomes: Counter[str] = Counter()
        self.ledger = self.replica()

    def replica(self) -> QuotaLedger:
        api: Any = self.api
        view: Any = self.view
        leases = LedgerApi(api, api, "own")
        return QuotaLedger(leases, view, log=self.log, on_outcome=lambda outcome: self.outcomes.update([outcome]))

    async def submit(
        self, *names: str, ledger: QuotaLedger | None = None, writes: bool = True, new: bool = False
    ) -> list[str]:
        """Submit jobs at the same time. Returns the names of the admitted jobs."""
        ledger = ledger or self.ledger
        decisions = await asyncio.gather(
            *(
                ledger.verdict(
                    "team", decide=deciding(name, new=new), first=fits(name, new=new), writes=writes, seconds=5
                )
                for name in names
            )
        )
        return [decision.name for decision in decisions if decision.allowed]

    def see(self, name: str, **changes: Any) -> None:
        self.view.jobs["team", name] = record(name, **changes)

    @property
    def reserved(self) -> list[str]:
        return [entry.reservation.name for lease in self.view.all(RESERVATIONS).values() for entry in lease.entries]


def fits(name: str = "c", *, new: bool = False) -> Decision:
    """A verdict that admits the job and ignores all reservations."""
    return Decision(name=name, reservation=Reservation(f"uid-{name}", name, new=new))


def deciding(name: str, *, new: bool = False) -> Callable[[ClusterView], Decision]:
    """A function that decides about a job in a namespace whose quota is enough for `HOLDS` jobs."""

    def decide(view: ClusterView) -> Decision:
        leases = view.within(RESERVATIONS, "team")
        assert leases is not UNKNOWN
        stored = {(key[1], job.uid) for key, job in view.within(MPI_JOBS, "team").items()}  # type: ignore[union-attr]
        reserved = [entry.reservation for lease in leases.values() for entry in lease.entries]
        pending = [
            reservation
            for reservation in reserved
            if not (reservation.new and (reservation.name, reservation.uid) in stored)
        ]
        others = {reservation.name for reservation in pending} - {name}
        denied = [] if len(others) < HOLDS else [Finding("resource-quota", Violation("", "full", fix=""))]
        return Decision(name=name, denied=denied, reservation=Reservation(f"uid-{name}", name, new=new))

    return decide


def record(name: str, *, uid: str = "", over: bool = False) -> MPIJobRecord:
    return MPIJobRecord("team", name, uid or f"uid-{name}", over, False, "", ())
