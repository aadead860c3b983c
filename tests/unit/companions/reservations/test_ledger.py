"""The ledger of quotas against an API server that conflicts, fails or hangs."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from tests.support.logs import Log
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.admission.pipelines import DeadlineExceeded
from webhook.client.calls import ApiError, ClusterError
from webhook.client.paging import SLICE_OBJECTS
from webhook.client.wire import Page, PageMetadata
from webhook.cluster.overlay import Overlay
from webhook.cluster.resource import Resource
from webhook.cluster.resources import reservations
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.pods import JOB_NAME, PODS
from webhook.cluster.resources.reservations import ANNOTATION, RESERVATIONS, Reservation
from webhook.cluster.view import UNKNOWN, ClusterView, NothingKnown
from webhook.companions.reservations.ledger import DOUBTS, QuotaLedger
from webhook.companions.reservations.sight import LIFETIME, SEEN, SILENCE
from webhook.rules import Violation

LEASE = "/apis/coordination.k8s.io/v1/namespaces/own/leases/quota-team"
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

    async def request(self, method: str, path: str, body: Any = None, **_: str) -> dict[str, Any]:
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
        name = body["metadata"]["name"]
        key = f"{path.removesuffix('/' + name)}/{name}"
        stored = self.leases.get(key, {}).get("metadata", {}).get("resourceVersion", "")
        if body["metadata"].get("resourceVersion", "") != stored:
            raise ApiError(409, "changed")
        self.store(key, body)
        return self.leases[key]

    def now(self) -> float:
        return self.time

    async def list_page(self, target: str, *, metadata_only: bool = False) -> Page[Raw]:
        await asyncio.sleep(self.slow)
        self.listed.append(target)
        plural = target.partition("?")[0].rsplit("/", 1)[-1]
        self.before_list(plural)
        return Page(PageMetadata("7"), [Raw(json.dumps(each).encode()) for each in self.objects.get(plural, ())])

    def store(self, key: str, body: dict[str, Any]) -> None:
        self.version += 1
        self.writes += 1
        metadata = {**body["metadata"], "namespace": "own", "resourceVersion": str(self.version)}
        self.leases[key] = {**body, "metadata": metadata}


class View(NothingKnown):
    """Knows no pod and no job, and the Leases of `api`; listeners are called by the test."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.silent = 0.0
        self.jobs: dict[tuple[str, str], MPIJobRecord] = {}
        self.listeners: dict[Resource[Any, Any], Callable[..., None]] = {}

    def on_change(self, resource: Resource[Any, Any], callback: Callable[..., None]) -> None:
        self.listeners[resource] = callback

    def within(self, resource: Resource[Any, Any], namespace: str) -> Any:
        if resource is MPI_JOBS and self.jobs:
            return {key: job for key, job in self.jobs.items() if key[0] == namespace}
        return {} if resource is PODS else UNKNOWN

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
            *(ledger.verdict("team", decide=deciding(name, new=new), writes=writes, seconds=5) for name in names)
        )
        return [decision.name for decision in decisions if decision.allowed]

    @property
    def reserved(self) -> list[str]:
        return [name for lease in self.view.all(RESERVATIONS).values() for name in names_of(lease)]


def names_of(lease: Any) -> list[str]:
    return [entry.reservation.name for entry in lease.entries]


def deciding(name: str, *, new: bool = False) -> Callable[[ClusterView], Decision]:
    """A namespace has room for `HOLDS` jobs."""

    def decide(view: ClusterView) -> Decision:
        found = view.within(RESERVATIONS, "team")
        assert found is not UNKNOWN
        others = [other for lease in found.values() for other in names_of(lease) if other != name]
        denied = [] if len(others) < HOLDS else [Finding("resource-quota", Violation("", "full", fix=""))]
        return Decision(name=name, denied=denied, reservation=Reservation(f"uid-{name}", name, new=new))

    return decide


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.companions.reservations.ledger.PAUSE", 0)


async def test_those_that_come_together_are_written_at_once() -> None:
    world = World()
    assert await world.submit("a", "b", "c", "d", "e") == ["a", "b", "c"]
    assert world.reserved == ["a", "b", "c"]
    assert world.api.writes == 1
    assert world.outcomes == {"reserved": 3, "not-reserved": 2}


async def test_two_replicas_share_what_there_is() -> None:
    world = World()
    other = world.replica()
    world.api.slow = 0.001
    first, second = await asyncio.gather(world.submit("a", "b", "c"), world.submit("d", "e", "f", ledger=other))
    assert len(first) + len(second) == HOLDS
    assert sorted(world.reserved) == sorted(first + second)


async def test_a_job_that_is_sent_again_counts_once() -> None:
    world = World()
    assert await world.submit("a", "b", "c") == ["a", "b", "c"]
    assert await world.submit("c") == ["c"]
    assert sorted(world.reserved) == ["a", "b", "c"]


async def test_a_dry_run_writes_nothing() -> None:
    world = World()
    assert await world.submit("a", writes=False) == ["a"]
    assert world.api.writes == 0


async def test_a_conflict_is_tried_again_with_what_is_there_then() -> None:
    world = World()
    other = World()
    await other.submit("x", "y", "z")

    def somebody_else_is_faster() -> None:
        world.api.before_write = lambda: None
        world.api.store(LEASE, other.api.leases[LEASE])

    world.api.before_write = somebody_else_is_faster
    assert await world.submit("a") == []
    assert world.outcomes["conflict"] == 1
    assert world.reserved == ["x", "y", "z"]


@pytest.mark.parametrize(
    "fault",
    [
        ApiError(403, "no"),
        ClusterError("no answer"),
        ApiError(500, "oops"),
        ApiError(404, "there is no such namespace"),
    ],
)
async def test_what_cannot_be_written_is_a_fault_of_the_cluster(fault: Exception) -> None:
    world = World(fault)
    with pytest.raises(ClusterError):
        await world.submit("a")
    assert world.outcomes == {"unavailable": 1}
    assert world.log.told == ["quota ledger not usable"]
    assert await world.submit("b") == ["b"]


async def test_without_end_of_conflicts_there_is_no_verdict() -> None:
    world = World(*[ApiError(409, "changed")] * 50)
    with pytest.raises(DeadlineExceeded):
        await world.submit("a")


async def test_who_waits_too_long_gets_no_verdict() -> None:
    world = World()
    world.api.slow = 0.2
    with pytest.raises(DeadlineExceeded):
        await world.ledger.verdict("team", decide=deciding("a"), writes=True, seconds=0.01)
    assert world.outcomes["late"] == 1
    await world.ledger.close()


async def test_a_fault_with_one_job_is_not_that_of_the_others() -> None:
    def broken(_: ClusterView) -> Decision:
        raise DeadlineExceeded("worker-count")

    world = World()
    results = await asyncio.gather(
        world.ledger.verdict("team", decide=broken, writes=True, seconds=5), world.submit("a"), return_exceptions=True
    )
    assert isinstance(results[0], DeadlineExceeded)
    assert results[1] == ["a"]


@pytest.mark.parametrize("garbage", ["{", "[]x", '[{"reservation": 3}]', "null"])
async def test_reservations_that_nobody_can_read_are_written_anew(garbage: str) -> None:
    world = World()
    await world.submit("a")
    world.api.leases[LEASE]["metadata"]["annotations"][ANNOTATION] = garbage
    assert await world.submit("b") == ["b"]
    assert world.reserved == ["b"]
    assert "reservations are unreadable" in world.log.told


async def test_a_reservation_ends_by_itself() -> None:
    world = World()
    await world.submit("a", "b", "c")
    assert await world.submit("d") == []
    world.now += LIFETIME
    assert await world.submit("d") == ["d"]
    assert world.reserved == ["d"]


async def test_times_are_those_of_the_api_server() -> None:
    """The clocks of two nodes were 31 seconds apart, and nine jobs were let in where three fit."""
    world = World()
    world.api.time = 5_000.0
    await world.submit("a", ledger=world.replica(clock=None))
    [lease] = world.view.all(RESERVATIONS).values()
    assert [entry.expires for entry in lease.entries] == [5_000 + LIFETIME]


async def test_when_there_is_no_room_for_a_reservation_the_verdict_stands_and_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reservations, "MOST_BYTES", 80)
    world = World()
    assert await world.submit("a", "b", "c") == ["a", "b", "c"]
    assert world.reserved == ["a", "b"]
    assert world.outcomes == {"reserved": 2, "full": 1}
    assert world.log.events("reservations are full") == [{"left_out": 1}]


async def test_jobs_that_are_seen_make_room_where_it_is_scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservations, "MOST_BYTES", 80)
    world = World()
    await world.submit("a", "b")
    world.view.listeners[MPI_JOBS](("team", "a"), None, record("a"))
    world.now += SEEN
    assert await world.submit("c") == ["c"]
    assert world.reserved == ["b", "c"]


async def test_a_replica_that_does_not_see_a_job_yet_counts_it_though_others_see_it() -> None:
    world = World()
    stalled = world.replica()  # nobody tells this one of jobs
    world.view.listeners = {}
    seeing = world.replica()
    await world.submit("a", "b", "c", ledger=seeing)
    world.view.listeners[MPI_JOBS](("team", "a"), None, record("a"))
    world.now += SEEN
    assert await world.submit("d", ledger=seeing) == ["d"]
    assert world.reserved == ["a", "b", "c", "d"]
    assert await world.submit("e", ledger=stalled) == []


def job(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"}, "spec": {"mpiReplicaSpecs": {}}}


@pytest.mark.parametrize(
    ("silent", "cached", "counted", "seen"),
    [
        (SILENCE - 1, ["x"], 2, None),
        (SILENCE, [], 2, {"a", "b"}),
        (SILENCE, ["a"], 2, {"a", "b"}),
        (SILENCE, ["a", "x"], 2, {"a", "b"}),
        (SILENCE, ["a", "b"], 2, None),
        (SILENCE, ["a", "x"], None, {"a", "b"}),
    ],
    ids=["heard just now", "stalled", "behind", "one came and one went", "the same ones", "nobody says how many"],
)
async def test_a_watch_that_may_have_stalled_is_not_relied_on(
    silent: float, cached: list[str], counted: int | None, seen: set[str] | None
) -> None:
    world = stalled(silent, cached, counted)
    found: list[Any] = []
    await world.ledger.verdict("team", decide=looking(found), writes=True, seconds=5)
    assert found == [seen]


async def test_what_was_found_to_be_the_same_is_not_listed_for_each_job() -> None:
    world = stalled(SILENCE, ["a", "b"], 2)
    for _ in range(3):
        await world.ledger.verdict("team", decide=looking([]), writes=True, seconds=5)
    assert [each.partition("?")[0] for each in world.api.listed if "mpijobs" in each] == [JOBS]


async def test_of_thousands_of_jobs_only_the_number_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """To list them takes longer than a job can wait."""
    monkeypatch.setattr("webhook.companions.reservations.sight.MOST_COMPARED", 1)
    world = stalled(SILENCE, ["a", "x"], 2)
    found: list[Any] = []
    await world.ledger.verdict("team", decide=looking(found), writes=True, seconds=5)
    assert found == [None]


def stalled(silent: float, cached: list[str], counted: int | None) -> World:
    """A watch that was silent for so long and has seen `cached`; there are a and b."""
    world = World()
    world.view.silent = silent
    read: Any = MPI_JOBS.project
    world.view.jobs = {("team", name): read(json.dumps(job(name)).encode()) for name in cached}
    world.view.jobs["other", "x"] = record("x")
    world.api.objects["mpijobs"] = [job("a"), job("b")]
    world.api.counted = counted
    return world


def looking(found: list[Any]) -> Callable[[ClusterView], Decision]:
    """Adds the names of the jobs in the view, None where they are those of the cache."""

    def decide(view: ClusterView) -> Decision:
        assert isinstance(view, Overlay)
        jobs = view.within(MPI_JOBS, "team")
        found.append({name for _, name in jobs} if MPI_JOBS in view.known and jobs is not UNKNOWN else None)
        return Decision(name="c")

    return decide


async def test_thousands_of_pods_are_read_in_pages_and_others_go_on() -> None:
    """2,500 pods in one list took four seconds of the loop, and the job got no verdict."""
    world = World()
    await world.submit("a", "b", "c")
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "a", "uid": "uid-a", "controller": True}
    metadata = {"namespace": "team", "labels": {JOB_NAME: "a"}, "ownerReferences": [owner]}
    pods = [{"metadata": {**metadata, "name": f"p{n}"}} for n in range(2_500)]
    world.api.objects["pods"] = pods
    submitted = asyncio.create_task(world.submit("d"))
    turns = 0
    while not submitted.done():
        turns += 1
        await asyncio.sleep(0)
    assert await submitted == []
    assert "limit=500" in world.api.listed[-2]
    assert turns > len(pods) / SLICE_OBJECTS


async def test_a_job_is_not_judged_again_and_again_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of pods each time takes long, and the one who waits should hear of the quota."""
    monkeypatch.setattr("webhook.companions.reservations.ledger.LONGEST_DOUBT", 0)
    world = World()
    await world.submit("a", "b", "c")
    world.api.listed.clear()
    assert await world.submit("d") == []
    assert len([each for each in world.api.listed if "/resourcequotas" in each]) == DOUBTS
    assert len([each for each in world.api.listed if "/pods" in each]) == 1


@pytest.mark.parametrize(("until_pods", "admitted", "seconds"), [(12, True, 60), (10**9, False, 1)])
async def test_nobody_is_refused_for_pods_that_count_twice(until_pods: int, admitted: bool, seconds: float) -> None:
    """Each time a pod comes between the look at pods and the look at quotas, which count it already."""
    world = World()
    world.view.listeners[PODS](("team", "p"), None, None)
    looks = 0

    def decide(view: ClusterView) -> Decision:
        nonlocal looks
        looks += 1
        newest = len(view.within(PODS, "team")) == len(world.api.objects["pods"])  # type: ignore[arg-type]
        fits = newest if looks < until_pods else admitted
        return Decision(name="a", denied=[] if fits else [Finding("resource-quota", Violation("", "full", fix=""))])

    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "a", "uid": "u", "controller": True}
    world.api.objects["pods"] = []

    def another(plural: str) -> None:
        if plural == "resourcequotas" and looks < until_pods:
            labels = {JOB_NAME: "a"}
            metadata = {"name": f"p{len(pods)}", "namespace": "team", "labels": labels, "ownerReferences": [owner]}
            pods.append({"metadata": metadata})

    pods = world.api.objects["pods"]
    world.api.before_list = another
    decision = await world.ledger.verdict("team", decide=decide, writes=True, seconds=seconds)
    assert decision.allowed == admitted
    assert looks >= DOUBTS


@pytest.mark.parametrize("others", [False, True])
async def test_replicas_that_write_by_turns_leave_each_other_time(
    monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    """Who has just written would else be the first again, and the other would judge its batch in vain once more."""
    monkeypatch.setattr("webhook.companions.reservations.ledger.LONGEST_TURN", 9)
    monkeypatch.setattr("webhook.companions.reservations.ledger.TURN", 1e9)
    world = World()
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noting(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(3600 if seconds == 9 else 0)

    def somebody_else_writes() -> None:
        world.api.before_write = lambda: None
        world.api.store(LEASE, {"metadata": {"name": "quota-team", "annotations": {}}})

    if others:
        world.api.before_write = somebody_else_writes
    monkeypatch.setattr(asyncio, "sleep", noting)
    assert await world.submit("a", "b") == ["a", "b"]
    await sleep(0)
    await world.ledger.close()
    assert world.outcomes["conflict"] == others
    assert (9 in pauses) == others


def record(name: str, *, over: bool = False) -> MPIJobRecord:
    return MPIJobRecord("team", name, f"uid-{name}", over, False, "", ())


async def test_a_reservation_ends_when_everybody_has_seen_the_job() -> None:
    world = World()
    await world.submit("a", "b", "c")
    world.view.listeners[MPI_JOBS](("team", "a"), None, record("a"))
    assert await world.submit("d") == []
    world.now += SEEN
    assert await world.submit("d") == ["d"]


async def test_a_reservation_for_a_new_job_ends_when_the_job_is_seen() -> None:
    """All of it can be seen of the job then; what was reserved for a change may not be seen yet."""
    world = World()
    await world.submit("a", "b", "c", new=True)
    assert await world.submit("d") == []
    world.view.listeners[MPI_JOBS](("team", "a"), None, record("a"))
    assert await world.submit("d") == ["d"]


@pytest.mark.parametrize("after", [None, record("a", over=True)])
async def test_a_reservation_ends_with_its_job(after: MPIJobRecord | None) -> None:
    world = World()
    await world.submit("a", "b", "c")
    world.view.listeners[MPI_JOBS](("team", "a"), record("a"), after)
    assert await world.submit("d") == ["d"]


async def test_what_is_over_is_swept_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.companions.reservations.ledger.SWEEP", 0.001)
    world = World()
    await world.submit("a")
    sweeping = asyncio.create_task(world.ledger.run())
    await asyncio.sleep(0.02)
    assert world.reserved == ["a"]
    world.now += LIFETIME
    while world.api.leases:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    sweeping.cancel()
