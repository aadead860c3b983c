"""The ledger of quotas where a replica dies, a call fails or hangs, or somebody removes what was written."""

import asyncio
from typing import Any

import pytest

from tests.support.ledger_world import HOLDS, LEASE, World, deciding, fits
from webhook.admission.decision import Decision
from webhook.admission.pipelines import DeadlineExceeded
from webhook.client.calls import MERGE_PATCH, ApiError, ClusterError
from webhook.client.wire import FaultReason, WatchFault
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import PREFIX, RESERVATIONS
from webhook.cluster.view import UNKNOWN, ClusterView
from webhook.companions.reservations.sight import CLOCKS, LIFETIME, UNJUDGED

pytestmark = pytest.mark.usefixtures("no_pause")


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


async def test_who_got_no_verdict_in_time_reserves_nothing_for_long() -> None:
    world = World()
    world.api.slow = 0.05
    with pytest.raises(DeadlineExceeded):
        await world.ledger.verdict("team", decide=deciding("a"), first=fits("a"), writes=True, seconds=0.06)
    while world.reserved or not world.api.writes:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    assert world.outcomes["late"] == 1


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
