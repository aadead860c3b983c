"""When a reservation ends: by itself, with its job, when all have seen the job, or where room is scarce."""

import asyncio

import pytest

from tests.support.ledger_world import World, record
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.reservations import RESERVATIONS
from webhook.cluster.train_jobs import TRAIN_JOBS, TrainJobRecord
from webhook.companions.reservations.sight import LIFETIME, SEEN

pytestmark = pytest.mark.usefixtures("no_pause")


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
