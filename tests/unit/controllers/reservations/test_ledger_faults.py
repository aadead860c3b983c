"""The ledger of quotas when a replica dies, a call fails or hangs, or the stored ledger is removed."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tests.support.ledger_world import LEASE, World, deciding, fits
from webhook.admission.decision import Decision
from webhook.admission.pipelines import DeadlineExceeded
from webhook.client.calls import ApiError, ClusterError
from webhook.client.wire import FaultReason, WatchFault
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import ENTRIES, RESERVATIONS
from webhook.cluster.view import UNKNOWN, ClusterView
from webhook.controllers.reservations.limits import LIFETIME_SECONDS

pytestmark = pytest.mark.usefixtures("no_pause")


async def killed_before_its_reply(world: World, *names: str) -> None:
    """A replica reserves quota for these jobs and is killed before it replies."""
    other = world.replica()
    world.api.slow = 0.001
    sent = asyncio.create_task(world.submit(*names, ledger=other))
    world.api.after_write = other.close
    with suppress(asyncio.CancelledError):
        await asyncio.wait([sent], timeout=0.1)
        sent.cancel()
        await sent
    world.api.after_write = None
    assert world.reserved == [*names]


async def test_reservations_of_a_killed_replica_expire() -> None:
    world = World()
    await killed_before_its_reply(world, "a", "b", "c")
    assert await world.submit("d") == []
    world.api.time += LIFETIME_SECONDS
    assert await world.submit("d", "e", "f", "g") == ["d", "e", "f"]


async def test_job_sent_again_after_its_replica_was_killed_fits_at_once() -> None:
    world = World()
    await killed_before_its_reply(world, "a", "b", "c")
    assert await world.submit("d", "c", "b", "a") == ["c", "b", "a"]


async def test_job_without_a_verdict_in_time_reserves_nothing() -> None:
    world = World()
    world.api.slow = 0.05
    with pytest.raises(DeadlineExceeded):
        await world.ledger.verdict("team", decide=deciding("a"), first=fits("a"), writes=True, seconds=0.01)
    assert await world.submit("b") == ["b"]
    assert world.reserved == ["b"]
    assert world.outcomes == {"late": 1, "reserved": 1}


@pytest.mark.parametrize(
    "faults",
    [
        [ApiError(403, "no")],
        [ClusterError("no answer")],
        [ApiError(500, "oops")],
    ],
)
async def test_failed_write_is_a_cluster_error(faults: list[Exception]) -> None:
    world = World(*faults)
    with pytest.raises(ClusterError):
        await world.submit("a")
    assert world.outcomes == {"unavailable": 1}
    assert world.log.told == ["quota ledger not usable"]
    assert await world.submit("b") == ["b"]


async def test_jobs_get_no_verdict_while_the_lease_changes_constantly() -> None:
    world = World()

    def changed() -> None:
        raise ApiError(409, "changed")

    world.api.before_write = changed
    with pytest.raises(DeadlineExceeded):
        await world.ledger.verdict("team", decide=deciding("a"), first=fits("a"), writes=True, seconds=0.05)
    world.api.before_write = lambda: None
    assert await world.submit("b") == ["b"]
    assert world.outcomes == {"late": 1, "reserved": 1}


async def test_write_with_an_unknown_outcome_does_not_overwrite_the_next_one() -> None:
    world = World()
    late: list[tuple[str, str, Any]] = []
    request = world.api.request

    async def cut_off(method: str, path: str, body: Any = None, **_: str) -> Any:
        if method != "PUT":
            return await request(method, path, body)
        late.append((method, path, body))
        world.api.request = request  # type: ignore[method-assign]
        raise ClusterError("no answer")

    await world.submit("a")
    world.api.request = cut_off  # type: ignore[method-assign]
    with pytest.raises(ClusterError):
        await world.submit("x")
    assert await world.submit("b") == ["b"]
    with pytest.raises(ApiError):
        await request(*late[0])
    assert world.reserved == ["a", "b"]


async def test_fitting_job_is_admitted_despite_a_stale_cache_of_leases() -> None:
    """The watch on Leases has stalled, so the cache still contains deleted reservations."""
    world = World()
    await world.submit("x", "y", "z", ledger=world.replica())
    stale = world.view.all(RESERVATIONS)
    world.view.all = lambda resource: stale if resource is RESERVATIONS else UNKNOWN  # type: ignore[method-assign]
    world.api.leases.clear()
    assert await world.submit("a", "b", "c", "d") == ["a", "b", "c"]


async def test_error_of_one_job_does_not_affect_other_jobs() -> None:
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
async def test_unreadable_reservations_are_ignored(garbage: str) -> None:
    world = World()
    await world.submit("a")
    world.api.leases[LEASE]["metadata"]["annotations"][ENTRIES] = garbage
    assert await world.submit("b") == ["b"]
    assert world.reserved == ["b"]


async def test_failed_list_of_pods_affects_only_rejected_jobs() -> None:
    world = World()

    def fail(plural: str) -> None:
        if plural == "pods":
            raise WatchFault(FaultReason.UNREACHABLE, "it is away")

    world.api.before_list = fail
    world.view.silent[PODS] = 0
    verdicts = await asyncio.gather(*(world.submit(name) for name in "abcd"), return_exceptions=True)
    assert verdicts[:3] == [["a"], ["b"], ["c"]]
    assert isinstance(verdicts[3], ClusterError)
    assert world.outcomes == {"reserved": 3, "unavailable": 1}
