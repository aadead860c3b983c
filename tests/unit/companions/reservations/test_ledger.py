"""Replicas that let jobs in at once know of each other, and who is refused hears why."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.ledger_world import HOLDS, World, deciding, fits
from tests.support.quota_objects import quota
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.api.mpijob import WORKER
from webhook.api.quantity import NANO
from webhook.api.quota_charges import Charge
from webhook.api.quota_scopes import PodTraits
from webhook.client.calls import ApiError
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.reservations import RESERVATIONS, Reservation, ReservedPods
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.companions.reservations.sight import LIFETIME
from webhook.rules import Violation

pytestmark = pytest.mark.usefixtures("no_pause")


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


async def test_the_others_may_have_taken_the_room_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.companions.reservations.announcements.MOST_BYTES", 100)
    world = World()
    await world.submit("a", "b", ledger=world.replica())
    world.api.faults = [ApiError(422, "annotations are too long")]
    assert await world.submit("c") == ["c"]
    assert world.outcomes == {"reserved": 2, "full": 1}


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
