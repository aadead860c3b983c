"""A reservation ends after its lifetime, or with its job. A full ledger does not prevent the admission of a job."""

import asyncio

import pytest

from tests.support.ledger_world import World, record
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.reservations import RESERVATIONS
from webhook.controllers.reservations.limits import LIFETIME_SECONDS
from webhook.parts.trainer.resources import TRAIN_JOBS, TrainJobRecord

pytestmark = pytest.mark.usefixtures("no_pause")


async def test_expired_reservations_are_removed_and_valid_ones_stay() -> None:
    world = World()
    await world.submit("a", ledger=world.replica())
    world.api.time += LIFETIME_SECONDS / 2
    await world.submit("b")
    world.api.time += LIFETIME_SECONDS / 2
    await world.submit("c")
    assert world.reserved == ["b", "c"]


async def test_expiry_is_computed_with_the_api_servers_clock() -> None:
    """Formerly, if the clocks of two nodes differed by 31 seconds, nine jobs were admitted although only three fit."""
    world = World()
    world.api.time = 5_000.0
    await world.submit("a")
    [lease] = world.view.all(RESERVATIONS).values()
    assert [entry.expires for entry in lease.entries] == [5_000 + LIFETIME_SECONDS]


async def test_job_without_space_for_its_reservation_is_admitted_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("webhook.cluster.resources.reservations.MAX_LEDGER_BYTES", 70)
    world = World()
    assert await world.submit("a", "b", "c") == ["a", "b", "c"]
    assert world.reserved == ["a", "b"]
    assert world.outcomes == {"reserved": 2, "full": 1}


async def test_reservation_of_a_visible_job_is_kept_for_other_replicas() -> None:
    world = World()
    await world.submit("a", "b", "c", new=True)
    world.see("a")
    assert await world.submit("d", new=True) == ["d"]
    assert world.reserved == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("later", "counts"), [(2 * LIFETIME_SECONDS, True), (2 * LIFETIME_SECONDS + 1, False)])
async def test_entry_that_expires_too_late_is_ignored(later: float, counts: bool) -> None:
    world = World()
    world.api.time += later - LIFETIME_SECONDS
    await world.submit("a", "b", "c")
    world.api.time -= later - LIFETIME_SECONDS
    assert await world.submit("d") == ([] if counts else ["d"])


async def test_reservation_of_an_update_is_valid_although_the_job_is_visible() -> None:
    """Perhaps this replica has not seen the update yet."""
    world = World()
    await world.submit("a", "b", "c")
    world.see("a")
    assert await world.submit("d") == []


@pytest.mark.parametrize("after", [None, record("a", over=True)])
async def test_reservation_ends_with_its_job(after: MPIJobRecord | None) -> None:
    world = World()
    await world.submit("a", "b", "c")
    world.view.listeners[MPI_JOBS](("team", "a"), record("a"), after)
    assert await world.submit("d") == ["d"]


@pytest.mark.parametrize("after", [None, TrainJobRecord("team", "a", "uid-TrainJob/a", over=True)])
async def test_reservation_of_a_train_job_ends_with_the_job(after: TrainJobRecord | None) -> None:
    world = World()
    await world.submit("TrainJob/a", "TrainJob/b", "c", new=True)
    seen = TrainJobRecord("team", "a", "uid-TrainJob/a")
    world.view.listeners[TRAIN_JOBS](("team", "a"), None, seen)
    assert await world.submit("d") == []
    world.view.listeners[TRAIN_JOBS](("team", "a"), seen, after)
    assert await world.submit("d") == ["d"]


async def test_leases_without_valid_reservations_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.controllers.reservations.limits.SWEEP_SECONDS", 0.001)
    world = World()
    await world.submit("a")
    sweeping = asyncio.create_task(world.ledger.run())
    await asyncio.sleep(0.02)
    assert world.reserved == ["a"]
    world.api.time += LIFETIME_SECONDS
    while world.api.leases:  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.001)
    sweeping.cancel()
