"""A ledger of quotas, an API server that fails or hangs when it should, and replicas beside it."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from tests.support.logs import Log
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.client.calls import MERGE_PATCH, ApiError
from webhook.client.wire import Page, PageMetadata
from webhook.cluster.resource import Resource
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS, Reservation
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView, NothingKnown
from webhook.companions.reservations.ledger import QuotaLedger
from webhook.rules import Violation

LEASES = "/apis/coordination.k8s.io/v1/namespaces/own/leases"
LEASE = f"{LEASES}/quota-team"
JOBS = "/apis/kubeflow.org/v2beta1/namespaces/team/mpijobs"
HOLDS = 3


class Api:
    """Holds Leases with resource versions; `faults` are raised first, one for each write."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.leases: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self.version = 0
        self.before_write: Callable[[], None] = lambda: None
        self.slow = 0.0
        self.listed: list[str] = []
        self.counted: int | None = None
        self.time = 0.0
        self.objects: dict[str, list[dict[str, Any]]] = {}
        self.before_list: Callable[[str], None] = lambda _: None

    async def request(self, method: str, path: str, body: Any = None, patch: str = "", **_: str) -> dict[str, Any]:
        await asyncio.sleep(self.slow)
        if method == "GET":
            if "limit=1" in path:
                remaining = {} if self.counted is None else {"remainingItemCount": self.counted - 1}
                return {"metadata": {"continue": "t", **remaining}, "items": [{}]}
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
            if path in self.leases:
                raise ApiError(409, "already exists")
            return self.store(path, body)
        assert (method, patch) == ("PATCH", MERGE_PATCH)
        if path not in self.leases:
            raise ApiError(404, "not found")
        stored = self.leases[path]["metadata"]
        if body["metadata"].get("resourceVersion", stored["resourceVersion"]) != stored["resourceVersion"]:
            raise ApiError(409, "changed")
        merged = {**stored.get("annotations", {}), **body["metadata"]["annotations"]}
        annotations = {key: text for key, text in merged.items() if text is not None}
        return self.store(path, {**self.leases[path], "metadata": {**stored, "annotations": annotations}})

    def now(self) -> float:
        return self.time

    async def list_page(self, target: str, *, metadata_only: bool = False) -> Page[Raw]:
        await asyncio.sleep(self.slow)
        self.listed.append(target)
        plural = target.partition("?")[0].rsplit("/", 1)[-1]
        self.before_list(plural)
        return Page(PageMetadata("7"), [Raw(json.dumps(each).encode()) for each in self.objects.get(plural, ())])

    def store(self, key: str, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.writes += 1
        made = {"namespace": "own", "uid": f"uid-{self.version}", **body["metadata"]}
        metadata = {**made, "resourceVersion": str(self.version)}
        self.leases[key] = {**body, "metadata": metadata}
        return self.leases[key]


class View(NothingKnown):
    """Knows no pod and no job, and the Leases of `api`; listeners are called by the test."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.silent = 0.0
        self.quotas: dict[tuple[str, str], Any] = {}
        self.jobs: dict[tuple[str, str], MPIJobRecord] = {}
        self.listeners: dict[Resource[Any, Any], Callable[..., None]] = {}

    def on_change(self, resource: Resource[Any, Any], callback: Callable[..., None]) -> None:
        self.listeners[resource] = callback

    def within(self, resource: Resource[Any, Any], namespace: str) -> Any:
        if resource is MPI_JOBS and self.jobs:
            return {key: job for key, job in self.jobs.items() if key[0] == namespace}
        if resource is RESOURCE_QUOTAS:
            return self.quotas
        return {} if resource is PODS else UNKNOWN

    def get(self, resource: Resource[Any, Any], key: Any) -> Any:
        return self.all(RESERVATIONS).get(f"{LEASES}/{key[1]}", ABSENT) if resource is RESERVATIONS else UNKNOWN

    def silence(self, resource: Resource[Any, Any]) -> float:
        return self.silent

    def all(self, resource: Resource[Any, Any]) -> Any:
        if resource is MPI_JOBS:
            return self.jobs
        return {key: RESERVATIONS.project(json.dumps(lease).encode()) for key, lease in self._api.leases.items()}


class World:
    """A ledger, and the time."""

    def __init__(self, *faults: Exception) -> None:
        self.api = Api(*faults)
        self.view = View(self.api)
        self.log = Log()
        self.now = 1_000_000.0
        self.outcomes: Counter[str] = Counter()
        self.ledger = self.replica()

    def replica(self, **options: Any) -> QuotaLedger:
        made: Any = QuotaLedger
        ledger: QuotaLedger = made(
            api=self.api,
            connection=self.api,
            view=self.view,
            namespace="own",
            log=self.log,
            on_outcome=lambda outcome: self.outcomes.update([outcome]),
            **{"clock": lambda: self.now, **options},
        )
        return ledger

    async def submit(
        self, *names: str, ledger: QuotaLedger | None = None, writes: bool = True, new: bool = False
    ) -> list[str]:
        """Those that are admitted."""
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

    @property
    def reserved(self) -> list[str]:
        return [name for lease in self.view.all(RESERVATIONS).values() for name in names_of(lease)]


def names_of(lease: Any) -> list[str]:
    return [entry.reservation.name for entry in lease.entries]


def fits(name: str = "c", *, new: bool = False) -> Decision:
    """The verdict where nothing is reserved."""
    return Decision(name=name, reservation=Reservation(f"uid-{name}", name, new=new))


def deciding(name: str, *, new: bool = False) -> Callable[[ClusterView], Decision]:
    """A namespace has room for `HOLDS` jobs."""

    def decide(view: ClusterView) -> Decision:
        found = view.within(RESERVATIONS, "team")
        assert found is not UNKNOWN
        others = {other for lease in found.values() for other in names_of(lease)} - {name}
        denied = [] if len(others) < HOLDS else [Finding("resource-quota", Violation("", "full", fix=""))]
        return Decision(name=name, denied=denied, reservation=Reservation(f"uid-{name}", name, new=new))

    return decide


def record(name: str, *, over: bool = False) -> MPIJobRecord:
    return MPIJobRecord("team", name, f"uid-{name}", over, False, "", ())
