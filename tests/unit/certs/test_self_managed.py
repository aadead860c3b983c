"""The certificates of a replica from the first start through rotations."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from certs.authority import Authority
from certs.pem import fingerprints, load_certificates
from certs.rotation import Phase
from certs.self_managed import SelfManaged
from certs.state import load
from tests.support.ca_store import DAY, HOUR, MINUTE, START, Clock, Cluster
from tests.support.self_managed import EVERY, HOST, SETTINGS, Told, accepted, ready, replica
from tests.support.tls import connected, listener, served, strict_client


async def test_the_first_start():
    cluster, clock, told = Cluster(), Clock(), Told()
    one = replica(cluster, clock, told=told)
    assert (one.phase, one.trusted, one.certificate, one.leaf_not_after) == (None, False, None, None)
    await one.reconcile()
    assert told.reasons() == ["CACreated", "LeafIssued", "CAPromoted"]
    assert (one.phase, one.trusted, one.last_error, one.untrusting) == (Phase.STEADY, True, None, ())
    assert accepted(cluster, one, clock.now) == EVERY
    assert one.ca_not_after == START + 90 * DAY
    assert one.leaf_not_after == one.certificate.not_after == START + 12 * DAY
    assert cluster.writes == ["secret", "validating", "mutating", "secret"]
    assert set(cluster.data) == {"ca.crt", "ca.key"}
    await one.reconcile()
    assert (cluster.writes[4:], told) == ([], [])


async def test_nothing_is_served_before_it_is_trusted():
    cluster, clock = Cluster(), Clock()
    cluster.forbidden = {"write mutating", "write validating"}
    one = replica(cluster, clock)
    waiting = asyncio.create_task(one.first_certificate())
    await one.reconcile()
    assert (one.certificate, one.leaf, one.trusted, waiting.done()) == (None, None, False, False)
    assert one.last_error == "validating: may not write validating; mutating: may not write mutating"
    assert one.phase == Phase.PUBLISHING
    cluster.forbidden.clear()
    await one.reconcile()
    assert await waiting is one.certificate
    assert one.trusted


async def test_one_bundle_that_cannot_be_written_does_not_close_the_others():
    """All replicas were unready for the caBundle of the hook that fails open, and the one that fails closed failed."""
    cluster, clock, told = Cluster(), Clock(), Told()
    cluster.forbidden = {"write mutating"}
    one = replica(cluster, clock, told=told)
    for _ in range(2):
        await one.reconcile()
        assert (one.trusted, one.untrusting) == (True, ("mutating",))
        assert accepted(cluster, one, clock.now) == {"validating"}
        assert one.last_error == "mutating: may not write mutating"
    assert told.reasons() == ["CACreated", "LeafIssued", "CAPromoted", "CertificateProblem"]
    cluster.forbidden.clear()
    await one.reconcile()
    assert accepted(cluster, one, clock.now) == EVERY
    assert (one.trusted, one.untrusting, one.last_error) == (True, (), None)
    assert told.reasons() == ["CertificatesRecovered"]


async def test_at_the_end_of_a_ca_the_others_do_not_wait_for_a_bundle_that_cannot_be_written():
    cluster, clock, one, _ = await ready()
    cluster.forbidden = {"write mutating"}
    while clock.now < START + 89 * DAY:
        clock.now += DAY
        await one.reconcile()
        assert accepted(cluster, one, clock.now) == EVERY
    for _ in range(20):
        clock.now += DAY
        await one.reconcile()
        assert one.trusted
        assert accepted(cluster, one, clock.now) == {"validating"}
    cluster.forbidden.clear()
    await one.reconcile()
    assert accepted(cluster, one, clock.now) == EVERY


async def test_a_cluster_without_configurations():
    cluster, clock = Cluster(bundles=()), Clock()
    one = replica(cluster, clock)
    await one.reconcile()
    assert one.trusted
    cluster.bundles, cluster.versions = {"late": (b"",)}, {"late": 1}
    await one.reconcile()
    assert accepted(cluster, one, clock.now) == {"late"}


async def test_a_rotation():
    cluster, clock, one, told = await ready()
    first = one.leaf.issuer
    clock.now += 61 * DAY
    await one.reconcile()
    assert told.reasons() == ["LeafIssued", "CACreated", "CAPublished"]
    assert (one.phase, one.leaf.issuer) == (Phase.WAITING, first)
    assert load(cluster.data).published_at == clock.now
    assert len(fingerprints(cluster.bundles["mutating"][0])) == 2
    clock.now += SETTINGS.grace - timedelta(seconds=1)
    await one.reconcile()
    assert (one.phase, one.leaf.issuer, told) == (Phase.WAITING, first, [])
    clock.now += timedelta(seconds=1)
    await one.reconcile()
    assert told.reasons() == ["CAPromoted", "LeafIssued"]
    assert one.phase == Phase.RETIRING
    assert one.leaf.issuer != first
    assert first in fingerprints(cluster.bundles["mutating"][0])
    clock.now += SETTINGS.leaf_lifetime
    await one.reconcile()
    assert one.phase == Phase.RETIRING
    clock.now += 10 * MINUTE
    told.clear()
    await one.reconcile()
    assert told.reasons() == ["CARetired"]
    assert one.phase == Phase.STEADY
    assert fingerprints(cluster.bundles["mutating"][0]) == {load(cluster.data).current.fingerprint}
    assert set(cluster.data) == {"ca.crt", "ca.key"}


async def test_a_rotation_waits_for_a_bundle_that_cannot_be_written():
    cluster, clock, one, _ = await ready()
    first = one.leaf.issuer
    cluster.forbidden = {"write mutating"}
    for _ in range(5):
        clock.now += (61 * DAY) if one.phase == Phase.STEADY else HOUR
        await one.reconcile()
    assert (one.phase, one.leaf.issuer, one.trusted) == (Phase.PUBLISHING, first, True)
    cluster.forbidden.clear()
    await one.reconcile()
    assert one.phase == Phase.WAITING


async def test_the_grace_starts_again_when_a_bundle_lost_the_successor():
    cluster, clock, one, _ = await ready()
    before = cluster.bundles["mutating"][0]
    clock.now += 61 * DAY
    await one.reconcile()
    clock.now += MINUTE
    cluster.overwrite("mutating", before)
    await one.reconcile()
    assert (one.phase, load(cluster.data).published_at) == (Phase.WAITING, clock.now)


async def test_leaves_are_renewed_at_different_times():
    cluster, clock, one, _ = await ready()
    two = SelfManaged(cluster, [HOST], settings=SETTINGS, clock=clock, random=Random(2))
    await two.reconcile()
    due = [one.leaf.renew_at - START, two.leaf.renew_at - START]
    assert due[0] != due[1]
    assert all(SETTINGS.leaf_lifetime * 0.57 <= when <= SETTINGS.leaf_lifetime * 0.67 for when in due)
    before = one.leaf
    clock.now = before.renew_at - timedelta(seconds=1)
    await one.reconcile()
    assert one.leaf is before
    clock.now = before.renew_at
    await one.reconcile()
    assert (one.leaf.issuer, one.leaf_not_after) == (before.issuer, clock.now.replace(microsecond=0) + 12 * DAY)
    assert one.leaf.certificate.serial_number != before.certificate.serial_number


async def test_at_the_end_of_a_ca_that_cannot_be_replaced_leaves_are_not_renewed_for_nothing():
    cluster, clock, one, _ = await ready()
    cluster.forbidden = {"write the Secret"}
    clock.now += 85 * DAY
    await one.reconcile()
    assert one.leaf_not_after == one.ca_not_after
    clock.now += 4 * DAY
    leaf = one.leaf
    await one.reconcile()
    assert one.leaf is leaf


async def test_the_loop_looks_again_and_again():
    passes = asyncio.Queue()
    settings = replace(SETTINGS, interval=timedelta(milliseconds=5))
    one = replica(Cluster(), Clock(), settings=settings, after_pass=lambda: passes.put_nowait(1))
    task = asyncio.create_task(one.run())
    assert [await passes.get() for _ in range(5)] == [1] * 5
    task.cancel()


async def test_the_loop_tries_sooner_after_a_failure():
    cluster, passes = Cluster(), asyncio.Queue()
    cluster.down = True
    settings = replace(SETTINGS, interval=HOUR)
    one = replica(cluster, Clock(), settings=settings, after_pass=lambda: passes.put_nowait(one.last_error))
    task = asyncio.create_task(one.run())
    assert await passes.get() == "the API server does not answer"
    cluster.down = False
    assert await passes.get() is None
    task.cancel()


async def test_private_keys_are_in_no_text():
    cluster, _, one, _ = await ready()
    secret = await cluster.read_secret()
    text = f"{secret!r} {one.leaf!r} {load(secret.data)!r}"
    assert "PRIVATE" not in text


async def test_handshakes_through_a_rotation():
    """Real ones, by strict clients that hold the caBundle of before, of the overlap, and of after."""
    cluster, clock = Cluster(), Clock(datetime.now(UTC))
    one = replica(cluster, clock, hosts=["localhost"])
    await one.reconcile()
    bundles = [cluster.bundles["mutating"][0]]
    serials = set()

    async def handshakes():
        for bundle in bundles:
            async with connected(port, context=strict_client(bundle)) as (_, writer):
                serials.add(served(writer))

    async with listener(await one.first_certificate()) as port:
        await handshakes()
        state = load(cluster.data)
        successor = Authority("test CA", lifetime=90 * DAY, now=clock.now)
        cluster.set_data(state.with_successor(successor, clock.now).to_data())
        await one.reconcile()
        bundles.append(cluster.bundles["mutating"][0])
        await handshakes()
        assert len(serials) == 1
        clock.now += SETTINGS.grace
        await one.reconcile()
        assert one.leaf.issuer == successor.fingerprint
        bundles[0] = successor.certificate_pem
        await handshakes()
        assert len(serials) == 2
        assert len(load_certificates(bundles[1])) == 2
