"""The certificates of a replica from the first start through rotations."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from certs.authority import Authority
from certs.pem import fingerprints, load_certificates
from certs.rotation import Phase
from certs.self_managed import NO_SECRET, SelfManaged
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
    """All replicas were unready because of the caBundle of the hook that fails open, so the one that fails closed
    failed.
    """
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


async def test_expiring_ca_is_replaced_although_one_bundle_cannot_be_written():
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


async def test_leaves_are_not_renewed_by_an_expiring_ca():
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


async def test_private_keys_are_never_printed():
    cluster, _, one, _ = await ready()
    secret = await cluster.read_secret()
    text = f"{secret!r} {one.leaf!r} {load(secret.data)!r}"
    assert "PRIVATE" not in text


async def test_handshakes_through_a_rotation():
    """With real handshakes, by strict clients that hold the caBundle before, during and after the overlap."""
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
    """By more than the lifetime of the CA. Clients fail in the meantime, but one pass repairs everything."""
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
    # A time from a clock that was ahead must not keep old CAs forever.
    clock.now += SETTINGS.leaf_lifetime + HOUR
    await one.reconcile()
    assert one.phase == Phase.STEADY


@pytest.mark.parametrize("slow", [timedelta(minutes=50), timedelta(0)])
async def test_clients_with_a_slow_clock(slow):
    cluster, clock, one, _ = await ready()
    assert accepted(cluster, one, clock.now - slow) == EVERY


async def test_ca_expired_during_downtime_is_replaced():
    """The grace protects a served leaf; here none is served."""
    cluster, clock, _, _ = await ready()
    clock.now += 500 * DAY
    one = replica(cluster, clock)
    await one.reconcile()
    assert (one.trusted, one.phase) == (True, Phase.RETIRING)
    assert accepted(cluster, one, clock.now) == EVERY


async def test_an_overwritten_bundle_is_put_back():
    cluster, _, one, told = await ready()
    ours = cluster.bundles["mutating"][0]
    for pem in (b"", b"nonsense", Authority("test CA", lifetime=DAY).certificate_pem):
        cluster.overwrite("mutating", pem)
        await one.reconcile()
        assert cluster.bundles["mutating"] == (ours, ours)
        assert told.reasons() == ["CABundleRestored"]
    # A foreign CA next to the service's is removed, but nothing was broken.
    cluster.overwrite("mutating", ours + Authority("other", lifetime=DAY).certificate_pem)
    await one.reconcile()
    assert cluster.bundles["mutating"] == (ours, ours)
    # Another order or spacing does not count as a change.
    cluster.overwrite("mutating", b"\n" + ours)
    await one.reconcile()
    assert cluster.bundles["mutating"] == (b"\n" + ours,) * 2
    assert told == []


async def test_trust_is_what_the_live_bundles_say():
    cluster, clock, one, _ = await ready()
    cluster.overwrite("mutating", b"")
    cluster.forbidden = {"write mutating"}
    await one.reconcile()
    assert (one.trusted, one.untrusting) == (True, ("mutating",))
    cluster.overwrite("validating", b"")
    cluster.forbidden = {"write mutating", "write validating"}
    await one.reconcile()
    assert (one.trusted, one.untrusting) == (False, ("validating", "mutating"))
    cluster.forbidden.clear()
    await one.reconcile()
    assert (one.trusted, one.untrusting) == (True, ())
    cluster.down = True
    clock.now += 11 * DAY
    await one.reconcile()
    assert one.trusted  # as far as it can tell
    clock.now = one.leaf_not_after
    assert not one.trusted  # it has expired
    clock.now = one.ca_not_after
    await one.reconcile()
    assert not one.trusted, "a CA that has expired signs nothing"


async def test_problems_are_reported_once():
    cluster, _, one, told = await ready()
    cluster.down = True
    for _ in range(3):
        await one.reconcile()
    assert [notice.message for notice in told] == ["the API server does not answer"]
    assert one.last_error == "the API server does not answer"
    cluster.down = False
    told.clear()
    await one.reconcile()
    assert (told.reasons(), one.last_error) == (["CertificatesRecovered"], None)


async def test_a_deleted_secret():
    cluster, clock, one, told = await ready()
    leaf, bundles = one.leaf, dict(cluster.bundles)
    cluster.data = None
    await one.reconcile()
    assert (one.phase, one.last_error, one.leaf, one.trusted) == (Phase.MISSING, NO_SECRET, leaf, True)
    assert cluster.bundles == bundles
    cluster.set_data({})
    told.clear()
    await one.reconcile()
    # A new CA, next to the current one.
    assert (one.phase, one.leaf) == (Phase.WAITING, leaf)
    assert accepted(cluster, one, clock.now) == EVERY
    clock.now += SETTINGS.grace
    await one.reconcile()
    assert told.reasons() == ["CACreated", "CAPublished", "CertificatesRecovered", "CAPromoted", "LeafIssued"]
    assert one.leaf.issuer != leaf.issuer
    assert accepted(cluster, one, clock.now) == EVERY


@pytest.mark.parametrize("pem", [b"", b"nonsense", Authority("foreign", lifetime=DAY).certificate_pem])
@pytest.mark.parametrize("overwritten", [EVERY, {"mutating"}])
async def test_overwritten_bundles_are_restored_without_the_secret(pem, overwritten):
    cluster, clock, one, told = await ready()
    leaf, bundles = one.leaf, dict(cluster.bundles)
    cluster.data = None
    for name in overwritten:
        cluster.overwrite(name, pem)
    await one.reconcile()
    assert cluster.bundles == bundles
    assert (one.leaf, one.untrusting, one.trusted, one.last_error) == (leaf, (), True, NO_SECRET)
    assert accepted(cluster, one, clock.now) == EVERY
    assert told.reasons() == ["CABundleRestored"] * len(overwritten) + ["CertificateProblem"]


async def test_a_bundle_that_trusts_the_leaf_is_left_alone_without_the_secret():
    cluster, _, one, _ = await ready()
    cluster.data = None
    both = cluster.bundles["mutating"][0] + Authority("foreign", lifetime=DAY).certificate_pem
    cluster.overwrite("mutating", both)
    await one.reconcile()
    assert cluster.bundles["mutating"] == (both, both)


async def test_one_bundle_that_cannot_be_written_without_the_secret():
    cluster, clock, one, _ = await ready()
    cluster.data = None
    for name in EVERY:
        cluster.overwrite(name, b"")
    cluster.forbidden = {"write mutating"}
    await one.reconcile()
    assert one.last_error == f"{NO_SECRET}; mutating: may not write mutating"
    assert (one.untrusting, accepted(cluster, one, clock.now)) == (("mutating",), {"validating"})


async def test_replicas_in_the_middle_of_a_rotation_restore_one_bundle_without_the_secret():
    """One has not read the Secret since the CA was promoted; the other serves a leaf of the new CA."""
    cluster, clock, one, _ = await ready()
    late = replica(cluster, clock)
    await late.reconcile()
    clock.now += 61 * DAY
    await one.reconcile()
    clock.now += SETTINGS.grace
    await one.reconcile()
    assert one.leaf.issuer != late.leaf.issuer
    cluster.data = None
    for name in EVERY:
        cluster.overwrite(name, b"")
    cluster.writes.clear()
    for each in (late, one, late, one):
        await each.reconcile()
    assert accepted(cluster, one, clock.now) == accepted(cluster, late, clock.now) == EVERY
    assert cluster.writes == ["validating", "mutating"] * 2  # each replica wrote once


async def test_a_replica_that_never_read_the_secret_publishes_nothing():
    cluster = Cluster()
    cluster.data = None
    one = replica(cluster, Clock())
    await one.reconcile()
    assert (cluster.writes, one.last_error, one.trusted) == ([], NO_SECRET, False)


async def test_leaves_go_on_while_the_secret_is_deleted():
    """Clients still trust the CA of their caBundles: they must not be rejected."""
    cluster, clock, one, told = await ready()
    leaf = one.leaf
    cluster.data = None
    for _ in range(12):
        clock.now += SETTINGS.leaf_lifetime / 3
        await one.reconcile()
        assert (one.phase, one.last_error, one.trusted) == (Phase.MISSING, NO_SECRET, True)
        assert accepted(cluster, one, clock.now) == EVERY
    assert one.leaf != leaf
    assert one.leaf.issuer == leaf.issuer
    assert "LeafIssued" in told.reasons()
    assert cluster.data is None


@pytest.mark.parametrize("what", ["read the Secret", "read caBundles"])
async def test_leaves_go_on_while_nothing_can_be_read(what):
    """After an outage longer than a leaf's life, the API server calls with the CA that it trusted before."""
    cluster, clock, one, told = await ready()
    leaf = one.leaf
    cluster.forbidden = {what}
    for _ in range(12):
        clock.now += SETTINGS.leaf_lifetime / 3
        await one.reconcile()
        assert one.last_error
        assert one.trusted
        assert accepted(cluster, one, clock.now) == EVERY
    assert (one.leaf != leaf, one.leaf.issuer) == (True, leaf.issuer)
    assert told.reasons().count("LeafIssued") > 3


async def test_leaves_go_on_without_the_secret_for_those_who_trust_them():
    """One caBundle was emptied and cannot be written: only its own clients fail."""
    cluster, clock, one, _ = await ready()
    issuer = one.leaf.issuer
    cluster.forbidden = {"write mutating"}
    cluster.overwrite("mutating", b"")
    for secret in (cluster.data, None):
        cluster.data = secret
        for _ in range(6):
            clock.now += SETTINGS.leaf_lifetime / 3
            await one.reconcile()
            assert (one.trusted, one.untrusting, one.leaf.issuer) == (True, ("mutating",), issuer)
            assert accepted(cluster, one, clock.now) == {"validating"}


async def test_one_that_starts_while_the_secret_recovers_does_not_wait():
    cluster, clock, one, _ = await ready()
    cluster.set_data({})
    other = replica(cluster, clock)
    await other.reconcile()
    assert other.trusted
    assert (other.phase, other.leaf.issuer) == (Phase.WAITING, load(cluster.data).successor.fingerprint)
    await one.reconcile()
    assert one.leaf.issuer != other.leaf.issuer
    assert accepted(cluster, one, clock.now) == accepted(cluster, other, clock.now) == EVERY


async def test_a_secret_restored_from_a_backup():
    cluster, clock, one, told = await ready()
    served_before = one.leaf.issuer
    backup = Authority("test CA", lifetime=80 * DAY, now=clock.now)
    cluster.set_data({"ca.crt": backup.certificate_pem, "ca.key": backup.key_pem})
    await one.reconcile()
    assert told.reasons() == ["CARepaired", "LeafIssued"]
    assert fingerprints(cluster.bundles["mutating"][0]) == {served_before, backup.fingerprint}
    assert accepted(cluster, one, clock.now) == EVERY


async def test_unrelated_keys_in_the_secret_stay():
    cluster = Cluster()
    cluster.data = {"tls.crt": b"", "tls.key": b""}
    one = replica(cluster, Clock())
    await one.reconcile()
    assert set(cluster.data) == {"tls.crt", "tls.key", "ca.crt", "ca.key"}


async def test_slow_replica_does_not_undo_a_rotation():
    """It decides by a Secret from before the rotation and writes a caBundle after the rotation."""
    cluster, clock, one, _ = await ready()
    late = replica(cluster, clock)
    await late.reconcile()
    read = cluster.read_secret
    rotated = False

    async def read_then_sleep():
        nonlocal rotated
        secret = await read()
        if not rotated:
            rotated = True
            cluster.read_secret = read
            clock.now += 61 * DAY
            await one.reconcile()
            cluster.watch = everywhere
        return secret

    def everywhere():
        successor = load(cluster.data).successor.fingerprint
        assert all(successor in fingerprints(pem) for pems in cluster.bundles.values() for pem in pems)

    # Without something to write a late replica would do no harm anyway.
    cluster.overwrite("mutating", b"")
    cluster.read_secret = read_then_sleep
    await late.reconcile()
    assert rotated
    assert cluster.conflicts == 1
    everywhere()


async def test_damaged_old_certificate_is_restored_from_the_bundles():
    cluster, clock, one, told = await ready()
    first = one.leaf.issuer
    clock.now += 61 * DAY
    await one.reconcile()
    clock.now += SETTINGS.grace
    await one.reconcile()
    told.clear()
    cluster.set_data(cluster.data | {"old-ca.crt": b"nonsense", "old-ca.retired-at": b"nonsense"})
    await one.reconcile()
    (notice,) = told
    assert (notice.reason, notice.warning) == ("CARepaired", True)
    assert "old-ca.crt: the certificate is not PEM, or damaged" in notice.message
    # The caBundles still have it.
    assert first in fingerprints(cluster.data["old-ca.crt"])
    assert one.phase == Phase.RETIRING


async def test_endless_conflicts_end():
    cluster, clock, one, _ = await ready()
    clock.now += 61 * DAY
    read = cluster.read_secret

    async def read_and_change():
        secret = await read()
        cluster.version += 1
        return secret

    cluster.read_secret = read_and_change
    await one.reconcile()
    assert one.last_error == "other replicas or users kept changing the objects for 20 steps"
    assert cluster.conflicts == 20


async def test_a_bundle_that_goes_while_it_is_written():
    cluster, _, one, _ = await ready()
    cluster.overwrite("mutating", b"")
    write = cluster.write_bundle

    async def gone(bundle, pem):
        cluster.bundles.pop(bundle.name, None)
        return await write(bundle, pem)

    cluster.write_bundle = gone
    await one.reconcile()
    assert (one.last_error, one.trusted, set(cluster.bundles)) == (None, True, {"validating"})
