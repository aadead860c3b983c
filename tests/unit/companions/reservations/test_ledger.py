"""The ledger of quotas against an API server that fails or hangs, and replicas beside it."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from tests.support.logs import Log
from tests.support.quota_objects import quota
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.admission.pipelines import DeadlineExceeded
from webhook.api.mpijob import WORKER
from webhook.api.quantity import NANO
from webhook.api.quota_charges import Charge
from webhook.api.quota_scopes import PodTraits
from webhook.client.calls import MERGE_PATCH, ApiError, ClusterError
from webhook.client.paging import SLICE_OBJECTS
from webhook.client.wire import FaultReason, Page, PageMetadata, WatchFault
from webhook.cluster.overlay import Overlay
from webhook.cluster.resource import Resource
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.pods import JOB_NAME, PODS
from webhook.cluster.resources.reservations import PREFIX, RESERVATIONS, Reservation, ReservedPods
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.train_jobs import TRAIN_JOBS, TrainJobRecord
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView, NothingKnown
from webhook.companions.reservations.judging import DOUBTS
from webhook.companions.reservations.ledger import QuotaLedger
from webhook.companions.reservations.sight import CLOCKS, LIFETIME, SEEN, SILENCE, UNJUDGED
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


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.companions.reservations.ledger.PAUSE", 0)


async def test_those_that_come_together_are_written_at_once() -> None:
    world = World()
    assert await world.submit("a", "b", "c", "d", "e") == ["a", "b", "c"]
    assert world.reserved == ["a", "b", "c"]
    assert world.api.writes == 2, "they are announced, and then judged"
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


@pytest.mark.parametrize("sizes", [(3, 1), (1, 3)])
async def test_of_two_updates_of_a_job_either_may_be_stored(sizes: tuple[int, int]) -> None:
    world = World()

    def sized(workers: int) -> Callable[[ClusterView], Decision]:
        return lambda _: Decision(name="a", reservation=Reservation("u", "a", (ReservedPods(WORKER, workers, ()),)))

    for workers in sizes:
        first = sized(workers)(NothingKnown())
        await world.ledger.verdict("team", decide=sized(workers), first=first, writes=True, seconds=5)
    found: list[Any] = []

    def look(view: ClusterView) -> Decision:
        found.extend(view.within(RESERVATIONS, "team").values())  # type: ignore[union-attr]
        return Decision(name="b")

    await world.ledger.verdict("team", decide=look, first=fits("b"), writes=True, seconds=5)
    assert {entry.reservation.pods[0].count for entry in found[-1].entries} == {1, 3}


async def test_a_dry_run_writes_nothing() -> None:
    world = World()
    assert await world.submit("a", writes=False) == ["a"]
    assert world.api.writes == 0


async def test_of_two_replicas_that_judge_at_once_one_knows_of_the_other() -> None:
    """Each announces before it judges, whenever the other does."""
    world = World()
    other = world.replica()
    await world.submit("a", "b")
    between: list[asyncio.Task[list[str]]] = []

    def while_the_first_is_about_to_write() -> None:
        world.api.before_write = lambda: None
        between.append(asyncio.create_task(world.submit("d", ledger=other)))

    world.api.before_write = while_the_first_is_about_to_write
    world.api.slow = 0.001
    first = await world.submit("c")
    assert len(first + await between[0]) == 1


async def test_what_is_refused_is_withdrawn_and_whoever_was_refused_for_it_is_let_in() -> None:
    """Other replicas announced three jobs of which none is admitted, and this one judges beside them."""
    world = World()
    announced = asyncio.Event()

    def denied_once_announced(name: str) -> Callable[[ClusterView], Decision]:
        def decide(_: ClusterView) -> Decision:
            if name not in world.reserved:
                return fits(name)
            announced.set()
            return Decision(name=name, denied=[Finding("resource-quota", Violation("", "too large", fix=""))])

        return decide

    others = [
        asyncio.create_task(
            world.replica().verdict(
                "team", decide=denied_once_announced(name), first=fits(name), writes=True, seconds=5
            )
        )
        for name in ("x", "y", "z")
    ]
    await announced.wait()
    assert len(world.reserved) == HOLDS
    assert await world.submit("a") == ["a"]
    assert not any([(await other).allowed for other in others])
    while world.reserved != ["a"]:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)


async def killed_before_it_judged(world: World, *names: str) -> None:
    """What it announced stays."""
    other = world.replica()
    world.api.slow = 0.001
    sent = asyncio.create_task(world.submit(*names, ledger=other))
    while not world.api.writes:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)
    await other.close()
    sent.cancel()
    assert world.reserved == [*names]


async def test_what_a_killed_replica_announced_ends_after_seconds() -> None:
    """Its clients send the same jobs to another one."""
    world = World()
    await killed_before_it_judged(world, "a", "b", "c", "d", "e")
    world.now += UNJUDGED
    assert len(await world.submit("d", "c", "b", "a", "e")) == HOLDS


async def test_nobody_is_refused_because_of_what_is_not_judged() -> None:
    """It may be withdrawn, or end: until then it counts, and then nobody may have waited in vain."""
    world = World()
    await killed_before_it_judged(world, "a", "b", "c")
    waiting = asyncio.create_task(world.submit("d"))
    for _ in range(100):
        await asyncio.sleep(0.001)
        assert not waiting.done()
    world.now += UNJUDGED
    assert await waiting == ["d"]


async def test_what_waits_for_others_in_vain_gets_no_verdict() -> None:
    world = World()
    await killed_before_it_judged(world, "a", "b", "c")
    with pytest.raises(DeadlineExceeded):
        await world.ledger.verdict("team", decide=deciding("d"), first=fits("d"), writes=True, seconds=0.1)
    assert world.outcomes == {"late": 1}


@pytest.mark.parametrize("late", [True, False])
async def test_what_is_confirmed_too_late_is_not_admitted(late: bool) -> None:
    """Others may have found it ended."""
    world = World()

    def wait() -> None:
        world.now += UNJUDGED - CLOCKS if late else (UNJUDGED - CLOCKS) / 4

    world.api.before_write = wait
    if late:
        with pytest.raises(DeadlineExceeded):
            await world.submit("a")
        while world.reserved:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
    else:
        assert await world.submit("a") == ["a"]


async def test_a_job_that_is_sent_again_and_stored_is_in_the_place_of_the_one_before() -> None:
    """A replica was killed after it had confirmed, and before it answered."""
    world = World()
    see = world.view.listeners[MPI_JOBS]
    await world.submit("a", "b", "c", new=True, ledger=world.replica())
    again = Decision(name="a", reservation=Reservation("uid-again", "a", new=True))
    await world.ledger.verdict("team", decide=lambda _: again, first=again, writes=True, seconds=5)
    assert await world.submit("d") == []
    see(("team", "a"), None, MPIJobRecord("team", "a", "uid-again", over=False, suspended=False, queue="", pods=()))
    assert await world.submit("d") == ["d"]


async def test_who_gives_up_while_it_is_confirmed_reserves_nothing() -> None:
    world = World()
    review = asyncio.create_task(world.submit("a"))

    def give_up() -> None:
        if world.reserved:
            review.cancel()

    world.api.before_write = give_up
    with pytest.raises(asyncio.CancelledError):
        await review
    while world.reserved:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)


async def test_two_replicas_of_one_name_do_not_overwrite_each_other() -> None:
    """A pod is deleted and made again: nothing of a replica is remembered by its name."""
    world = World()
    await world.submit("a")
    await world.submit("b", ledger=world.replica())
    assert sorted(world.reserved) == ["a", "b"]


async def test_who_did_not_fit_a_moment_ago_is_announced_once_it_fits() -> None:
    """Refused jobs that come again and again write nothing."""
    world = World()
    await world.submit("a", "b", "c")
    writes = world.api.writes
    full = Decision(
        name="d", denied=[Finding("resource-quota", Violation("", "full", fix=""))], reservation=fits("d").reservation
    )
    refused = await world.ledger.verdict("team", decide=deciding("d"), first=full, writes=True, seconds=5)
    assert refused.denied
    assert world.api.writes == writes
    world.now += LIFETIME
    admitted = await world.ledger.verdict("team", decide=deciding("d"), first=full, writes=True, seconds=5)
    assert admitted.allowed
    assert world.reserved == ["d"]


async def test_who_got_no_verdict_in_time_reserves_nothing_for_long() -> None:
    world = World()
    world.api.slow = 0.05
    with pytest.raises(DeadlineExceeded):
        await world.ledger.verdict("team", decide=deciding("a"), first=fits("a"), writes=True, seconds=0.06)
    while world.reserved or not world.api.writes:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    assert world.outcomes["late"] == 1


async def test_the_others_may_have_taken_the_room_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.companions.reservations.announcements.MOST_BYTES", 100)
    world = World()
    await world.submit("a", "b", ledger=world.replica())
    world.api.faults = [ApiError(422, "annotations are too long")]
    assert await world.submit("c") == ["c"]
    assert world.outcomes == {"reserved": 2, "full": 1}


async def test_what_a_dead_replica_left_goes_and_what_another_reserves_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.companions.reservations.ledger.SWEEP", 0.001)
    world = World()
    await world.submit("a", ledger=world.replica())
    world.now += LIFETIME / 2
    await world.submit("b")
    world.now += LIFETIME / 2
    sweeping = asyncio.create_task(world.ledger.run())
    while "a" in world.reserved:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    sweeping.cancel()
    assert world.reserved == ["b"]
    [lease] = world.view.all(RESERVATIONS).values()
    assert len(lease.parts) == 1


@pytest.mark.parametrize(
    "faults",
    [
        [ApiError(403, "no")],
        [ClusterError("no answer")],
        [ApiError(500, "oops")],
        [ApiError(404, "there is no such Lease"), ApiError(404, "there is no such namespace")],
    ],
)
async def test_what_cannot_be_written_is_a_fault_of_the_cluster(faults: list[Exception]) -> None:
    world = World(*faults)
    with pytest.raises(ClusterError):
        await world.submit("a")
    assert world.outcomes == {"unavailable": 1}
    assert world.log.told == ["quota ledger not usable"]
    assert await world.submit("b") == ["b"]


async def test_a_lease_that_changes_all_the_time_cannot_be_written() -> None:
    world = World(*[ApiError(409, "changed")] * 3)
    with pytest.raises(ClusterError):
        await world.submit("a")
    assert await world.submit("b") == ["b"]


async def test_a_write_that_is_done_late_undoes_nothing() -> None:
    """Nobody heard whether it was done, and it is done after the next one."""
    world = World()
    late: list[tuple[str, Any]] = []
    request = world.api.request

    async def cut_off(method: str, path: str, body: Any = None, patch: str = "", **_: str) -> Any:
        late.append((path, body))
        world.api.request = request  # type: ignore[method-assign]
        raise ClusterError("no answer")

    await world.submit("a")
    world.api.request = cut_off  # type: ignore[method-assign]
    with pytest.raises(ClusterError):
        await world.submit("x")
    assert await world.submit("b") == ["b"]
    [(path, body)] = late
    await request("PATCH", path, body, patch=MERGE_PATCH)
    assert {"a", "b"} <= {*world.reserved}
    with pytest.raises(DeadlineExceeded):  # what is late may be a job that was let in by the cache
        await world.ledger.verdict("team", decide=deciding("c"), first=fits("c"), writes=True, seconds=0.1)
    await world.submit("b")
    assert sorted({*world.reserved}) == ["a", "b", "x"]


async def test_who_fits_does_not_wait_for_the_cache_to_say_so() -> None:
    """The watch on Leases has stalled, and shows what somebody has withdrawn."""
    world = World()
    await world.submit("x", "y", "z", ledger=world.replica())
    stale = world.view.all(RESERVATIONS)
    world.view.all = lambda resource: stale if resource is RESERVATIONS else UNKNOWN  # type: ignore[method-assign]
    world.api.leases.clear()
    assert await world.submit("a", "b", "c", "d") == ["a", "b", "c"]


async def test_who_waits_too_long_gets_no_verdict() -> None:
    world = World()
    world.api.slow = 0.2
    with pytest.raises(DeadlineExceeded):
        await world.ledger.verdict("team", decide=deciding("a"), first=fits("a"), writes=True, seconds=0.01)
    assert world.outcomes["late"] == 1
    await world.ledger.close()


async def test_a_fault_with_one_job_is_not_that_of_the_others() -> None:
    def broken(_: ClusterView) -> Decision:
        raise DeadlineExceeded("worker-count")

    world = World()
    results = await asyncio.gather(
        world.ledger.verdict("team", decide=broken, first=fits(), writes=True, seconds=5),
        world.submit("a"),
        return_exceptions=True,
    )
    assert isinstance(results[0], DeadlineExceeded)
    assert results[1] == ["a"]


@pytest.mark.parametrize("garbage", ["{", "[]x", '[{"reservation": 3}]', "null"])
async def test_reservations_that_nobody_can_read_count_for_nothing(garbage: str) -> None:
    world = World()
    await world.submit("a")
    world.api.leases[LEASE]["metadata"]["annotations"][PREFIX + "x"] = garbage
    assert await world.submit("b") == ["b"]
    assert world.reserved == ["a", "b"]
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
    monkeypatch.setattr("webhook.companions.reservations.announcements.MOST_BYTES", 100)
    world = World()
    assert await world.submit("a", "b", "c") == ["a", "b", "c"]
    assert world.reserved == ["a", "b"]
    assert world.outcomes == {"reserved": 2, "full": 1}
    assert world.log.events("reservations are full") == [{"left_out": 1}] * 2


async def test_jobs_that_are_seen_make_room_where_it_is_scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.companions.reservations.announcements.MOST_BYTES", 100)
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
    await world.ledger.verdict("team", decide=looking(found), first=fits(), writes=True, seconds=5)
    assert found[-1] == seen


async def test_what_was_found_to_be_the_same_is_not_listed_for_each_job() -> None:
    world = stalled(SILENCE, ["a", "b"], 2)
    for _ in range(3):
        await world.ledger.verdict("team", decide=looking([]), first=fits(), writes=True, seconds=5)
    assert [each.partition("?")[0] for each in world.api.listed if "mpijobs" in each] == [JOBS]


async def test_of_thousands_of_jobs_only_the_number_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """To list them takes longer than a job can wait."""
    monkeypatch.setattr("webhook.companions.reservations.sight.MOST_COMPARED", 1)
    world = stalled(SILENCE, ["a", "x"], 2)
    found: list[Any] = []
    await world.ledger.verdict("team", decide=looking(found), first=fits(), writes=True, seconds=5)
    assert found[-1] is None


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
    monkeypatch.setattr("webhook.companions.reservations.judging.LONGEST_DOUBT", 0)
    world = World()
    await world.submit("a", "b", "c")
    world.api.listed.clear()
    assert await world.submit("d") == []
    assert len([each for each in world.api.listed if "/resourcequotas" in each]) == DOUBTS
    assert len([each for each in world.api.listed if "/pods" in each]) == 1


@pytest.mark.parametrize(("until_pods", "admitted", "share"), [(12, True, 0.8), (10**9, False, 0.01)])
async def test_nobody_is_refused_for_pods_that_count_twice(
    until_pods: int, admitted: bool, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time a pod comes between the look at pods and the look at quotas, which count it already."""
    monkeypatch.setattr("webhook.companions.reservations.ledger.SHARE", share)
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
    decision = await world.ledger.verdict("team", decide=decide, first=fits("a"), writes=True, seconds=60)
    assert decision.allowed == admitted
    assert looks >= DOUBTS


GPUS = {"requests.nvidia.com/gpu": 8}


@pytest.mark.parametrize("heard", [True, False])
async def test_the_first_pod_that_nobody_has_seen_yet_is_not_counted_twice(heard: bool) -> None:
    """The quota counts it, whether this replica has heard of that or not, and nothing is reserved any more."""
    world = World()
    used = quota(GPUS, {"requests.nvidia.com/gpu": 1}, namespace="team")
    world.api.objects["resourcequotas"] = [used]
    if heard:
        world.view.quotas = {("team", "q"): RESOURCE_QUOTAS.project(json.dumps(used).encode())}
        world.view.listeners[RESOURCE_QUOTAS](("team", "q"), None, None)
    verdicts = [Decision(name="a", denied=[Finding("resource-quota", Violation("", "full", fix=""))]), fits("a")]

    def decide(_: ClusterView) -> Decision:
        return verdicts[0] if len(verdicts) == 1 else verdicts.pop(0)

    decision = await world.ledger.verdict("team", decide=decide, first=fits("a"), writes=True, seconds=5)
    assert decision.allowed


@pytest.mark.parametrize(
    ("used", "limit", "new", "judged"),
    [
        (0, 8, True, 0),
        (7, 8, True, 1),  # two workers may not fit
        (0, 9, True, 1),  # the cache knows another quota
        (0, 8, False, 1),  # an update takes only what is new
    ],
)
async def test_who_certainly_fits_is_not_judged_again(used: int, limit: int, new: bool, judged: int) -> None:
    world = World()
    known, current = (quota({"pods": hard}, {"pods": used}, namespace="team") for hard in (8, limit))
    world.view.quotas = {("team", "q"): RESOURCE_QUOTAS.project(json.dumps(known).encode())}
    world.api.objects["resourcequotas"] = [current]
    workers = ReservedPods(WORKER, 2, (Charge(PodTraits(), {"pods": NANO}),))
    first = Decision(name="a", reservation=Reservation("u", "a", (workers,), new=new))
    again: list[ClusterView] = []

    def decide(view: ClusterView) -> Decision:
        again.append(view)
        return first

    decision = await world.ledger.verdict("team", decide=decide, first=first, writes=True, seconds=5)
    assert decision.allowed
    assert len(again) == judged
    assert world.reserved == ["a"]


async def test_where_nothing_moves_a_refusal_does_not_wait() -> None:
    world = World()
    full = Decision(name="a", denied=[Finding("resource-quota", Violation("", "full", fix=""))])
    looks: list[ClusterView] = []

    def decide(view: ClusterView) -> Decision:
        looks.append(view)
        return full

    assert (await world.ledger.verdict("team", decide=decide, first=full, writes=True, seconds=5)).denied
    assert len(looks) == 1


async def test_pods_that_cannot_be_listed_concern_only_those_for_whom_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.companions.reservations.judging.REFUSALS", 1)
    world = World()

    def fail(plural: str) -> None:
        if plural == "pods":
            raise WatchFault(FaultReason.UNREACHABLE, "it is away")

    world.api.before_list = fail
    world.view.listeners[PODS](("team", "p"), None, None)
    verdicts = await asyncio.gather(*(world.submit(name) for name in "abcd"), return_exceptions=True)
    assert verdicts[:3] == [["a"], ["b"], ["c"]]
    assert isinstance(verdicts[3], ClusterError)
    assert world.outcomes == {"reserved": 3, "unavailable": 1}


@pytest.mark.parametrize("watched", [True, False])
async def test_what_was_in_a_lease_that_somebody_removed_counts_on(watched: bool) -> None:
    world = World()
    hear = world.view.listeners[RESERVATIONS]
    await world.submit("a", "b", ledger=world.replica())
    if watched:
        [before] = world.view.all(RESERVATIONS).values()
        hear(("own", "quota-team"), None, before)
        hear(("own", "quota-team"), before, None)
    else:
        assert await world.submit("x", writes=False) == ["x"]
    world.api.leases.clear()
    assert await world.submit("c", "d") == ["c"]
    world.now += LIFETIME
    assert await world.submit("e", "f") == ["e", "f"]


async def test_who_was_announced_in_a_lease_that_somebody_removed_is_not_admitted() -> None:
    """Others may have announced and been admitted in a new one, and not have heard of it."""
    world = World()

    def remove() -> None:
        if world.reserved:
            world.api.leases.clear()

    world.api.before_write = remove
    with pytest.raises(DeadlineExceeded):
        await world.submit("a")


async def test_what_a_replica_reserved_is_written_again_when_somebody_removed_the_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that begin afterwards have heard of nothing."""
    monkeypatch.setattr("webhook.companions.reservations.ledger.SWEEP", 0.001)
    world = World()
    await world.submit("a")
    [before] = world.view.all(RESERVATIONS).values()
    world.api.leases.clear()
    world.view.listeners[RESERVATIONS](("own", "quota-team"), before, None)
    sweeping = asyncio.create_task(world.ledger.run())
    while world.reserved != ["a"]:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    sweeping.cancel()


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


@pytest.mark.parametrize("after", [None, TrainJobRecord("team", "a", "uid-TrainJob/a", over=True)])
async def test_a_reservation_of_a_train_job_ends_with_it_and_not_when_it_is_seen(after: TrainJobRecord | None) -> None:
    world = World()
    await world.submit("TrainJob/a", "TrainJob/b", "c", new=True)
    seen = TrainJobRecord("team", "a", "uid-TrainJob/a")
    world.view.listeners[TRAIN_JOBS](("team", "a"), None, seen)
    assert await world.submit("d") == []
    world.view.listeners[TRAIN_JOBS](("team", "a"), seen, after)
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
