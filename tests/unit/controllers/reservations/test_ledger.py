"""Replicas that admit jobs at the same time see each other's reservations of quota."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.ledger_world import HOLDS, LEASE, World, deciding, fits
from tests.support.quota_objects import quota
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.api.mpijob import WORKER
from webhook.api.quantity import NANO
from webhook.api.quota_charges import Charge
from webhook.api.quota_scopes import PodTraits
from webhook.cluster.resources.reservations import RESERVATIONS, LedgerEntry, Reservation, ReservedPods, manifest
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.controllers.reservations.limits import LIFETIME_SECONDS
from webhook.rules import Violation

LIMITS = "webhook.controllers.reservations.limits"
pytestmark = pytest.mark.usefixtures("no_pause")


async def test_waiting_jobs_are_reserved_in_one_write() -> None:
    world = World()
    assert await world.submit("a", "b", "c", "d", "e") == ["a", "b", "c"]
    assert world.reserved == ["a", "b", "c"]
    assert world.api.writes == 1
    assert world.outcomes == {"reserved": 3, "not-reserved": 2}


async def test_one_write_has_at_most_a_hundred_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.ledger_world.HOLDS", 1000)
    monkeypatch.setattr(f"{LIMITS}.MAX_JUDGING_SECONDS", 60)
    world = World()
    assert len(await world.submit(*map(str, range(250)))) == 250
    assert world.api.writes == 3


async def test_jobs_not_judged_in_time_are_in_the_next_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{LIMITS}.MAX_JUDGING_SECONDS", 0)
    world = World()
    assert await world.submit("a", "b", "c", "d") == ["a", "b", "c"]
    assert world.api.writes == 3


async def test_job_that_is_sent_again_is_reserved_only_once() -> None:
    world = World()
    assert await world.submit("a", "b", "c") == ["a", "b", "c"]
    assert await world.submit("c") == ["c"]
    assert sorted(world.reserved) == ["a", "b", "c"]


@pytest.mark.parametrize("sizes", [(3, 1), (1, 3)])
async def test_both_updates_of_a_job_are_reserved(sizes: tuple[int, int]) -> None:
    world = World()

    def sized(workers: int) -> Callable[[ClusterView], Decision]:
        pods = ReservedPods(WORKER, workers, (Charge(PodTraits(), {"pods": NANO}),))
        return lambda _: Decision(name="a", reservation=Reservation("u", "a", (pods,)))

    for workers in sizes:
        first = sized(workers)(NothingKnown())
        await world.ledger.verdict("team", decide=sized(workers), first=first, writes=True, seconds=5)
    leases: list[Any] = []

    def look(view: ClusterView) -> Decision:
        leases.extend(view.within(RESERVATIONS, "team").values())  # type: ignore[union-attr]
        return Decision(name="b")

    await world.ledger.verdict("team", decide=look, first=fits("b"), writes=True, seconds=5)
    assert {entry.reservation.pods[0].count for entry in leases[-1].entries} == {1, 3}


async def test_dry_run_writes_nothing() -> None:
    world = World()
    assert await world.submit("a", writes=False) == ["a"]
    assert world.api.writes == 0


async def test_jobs_are_judged_again_after_another_replicas_write() -> None:
    world = World()
    await world.submit("a", "b")

    def another_replica_writes() -> None:
        world.api.before_write = lambda: None
        [lease] = world.view.all(RESERVATIONS).values()
        reservation = fits("x").reservation
        assert reservation is not None
        body, _ = manifest(lease, [*lease.entries, LedgerEntry(reservation, world.api.time + LIFETIME_SECONDS)])
        world.api.store(LEASE, body)

    world.api.before_write = another_replica_writes
    assert await world.submit("c") == []
    assert world.reserved == ["a", "b", "x"]


async def test_all_replicas_that_write_at_the_same_time_succeed() -> None:
    world = World()
    world.api.slow = 0.001
    replicas = [world.replica() for _ in range(5)]
    admitted = await asyncio.gather(*(world.submit(f"{at}", ledger=each) for at, each in enumerate(replicas)))
    assert len([name for names in admitted for name in names]) == HOLDS
    assert world.outcomes == {"reserved": HOLDS, "not-reserved": len(replicas) - HOLDS}


async def test_stored_job_replaces_the_reservation_of_an_earlier_attempt() -> None:
    """A replica wrote the reservation and was killed before its reply. Then the user sent the job again."""
    world = World()
    await world.submit("a", "b", "c", new=True, ledger=world.replica())
    again = Decision(name="a", reservation=Reservation("uid-again", "a", new=True))
    await world.ledger.verdict("team", decide=lambda _: again, first=again, writes=True, seconds=5)
    assert await world.submit("d") == []
    world.see("a", uid="uid-again")
    assert await world.submit("d") == ["d"]


async def test_rejected_job_is_reserved_as_soon_as_it_fits() -> None:
    """While the job does not fit, sending it again causes no write."""
    world = World()
    await world.submit("a", "b", "c")
    writes = world.api.writes
    full = Decision(
        name="d", denied=[Finding("resource-quota", Violation("", "full", fix=""))], reservation=fits("d").reservation
    )
    refused = await world.ledger.verdict("team", decide=deciding("d"), first=full, writes=True, seconds=5)
    assert refused.denied
    assert world.api.writes == writes
    world.api.time += LIFETIME_SECONDS
    admitted = await world.ledger.verdict("team", decide=deciding("d"), first=full, writes=True, seconds=5)
    assert admitted.allowed
    assert world.reserved == ["d"]


@pytest.mark.parametrize(
    ("used", "limit", "new", "judged"),
    [
        (0, 8, True, 0),
        (7, 8, True, 1),  # the quota has room for only one of the two workers
        (0, 9, True, 1),  # the cached quota is outdated
        (0, 8, False, 1),  # an update uses only the difference to the stored job
    ],
)
async def test_new_job_that_certainly_fits_is_not_judged_again(used: int, limit: int, new: bool, judged: int) -> None:
    world = World()
    cached, current = (quota({"pods": hard}, {"pods": used}, namespace="team") for hard in (8, limit))
    world.view.quotas = {("team", "q"): RESOURCE_QUOTAS.project(json.dumps(cached).encode())}
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
