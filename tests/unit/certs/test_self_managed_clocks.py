"""Clocks that are wrong, and certificates that expired meanwhile."""

from datetime import timedelta

import pytest

from certs.rotation import Phase
from tests.support.ca_store import DAY, HOUR, START, Clock, Cluster
from tests.support.self_managed import EVERY, SETTINGS, Told, accepted, ready, replica


@pytest.mark.parametrize("jump", [400 * DAY, -400 * DAY])
async def test_one_replica_with_a_wrong_clock_goes_by_the_api_server(jump):
    right = Clock()
    cluster, wrong, told = Cluster(clock=right), Clock(START + jump), Told()
    one, two = replica(cluster, right), replica(cluster, wrong, told=told)
    await one.reconcile()
    writes = list(cluster.writes)
    await two.reconcile()
    assert cluster.writes == writes
    assert accepted(cluster, two, right.now) == EVERY
    assert (two.trusted, two.clock_offset, two.now) == (True, -jump, right.now)
    assert told.reasons() == ["ClockDiffers", "LeafIssued"]
    await two.reconcile()
    assert told == []


async def test_the_clock_jumps_forward_and_back():
    """Beyond the life of the CA. Nothing helps clients in the meantime, but everything is in order after a pass."""
    cluster, clock, one, _ = await ready()
    for jump in (400 * DAY, -400 * DAY, 100 * DAY, -20 * DAY, -200 * DAY):
        clock.now += jump
        await one.reconcile()
        assert one.trusted, jump
        assert accepted(cluster, one, clock.now) == EVERY
        await one.reconcile()
        clock.now += SETTINGS.grace
        await one.reconcile()
        assert one.phase in {Phase.RETIRING, Phase.STEADY}
        assert accepted(cluster, one, clock.now) == EVERY
    # What a clock that was ahead has written does not keep old CAs for ever.
    clock.now += SETTINGS.leaf_lifetime + HOUR
    await one.reconcile()
    assert one.phase == Phase.STEADY


@pytest.mark.parametrize("slow", [timedelta(minutes=50), timedelta(0)])
async def test_clients_with_a_slow_clock(slow):
    cluster, clock, one, _ = await ready()
    assert accepted(cluster, one, clock.now - slow) == EVERY


async def test_expired_while_nobody_ran():
    """The grace protects what is served; there is nothing."""
    cluster, clock, _, _ = await ready()
    clock.now += 500 * DAY
    one = replica(cluster, clock)
    await one.reconcile()
    assert (one.trusted, one.phase) == (True, Phase.RETIRING)
    assert accepted(cluster, one, clock.now) == EVERY
