"""The certificates of a replica, from the first start through rotations and faults.

The grace is the time between the publication of a new CA in all caBundles and the first leaf of this CA.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from certs.authority import Authority
from certs.pem import fingerprints
from certs.rotation import Phase
from certs.self_managed import NO_SECRET, SelfManaged
from certs.state import load
from tests.support.ca_store import DAY, HOUR, MINUTE, START, Clock, Cluster
from tests.support.self_managed import EVERY, HOST, SETTINGS, Told, accepted, ready, replica


async def promote(clock, server):
    """Let the server create a new CA, and sign with the new CA after the grace."""
    clock.now += 61 * DAY
    await server.reconcile()
    clock.now += SETTINGS.grace
    await server.reconcile()


async def test_first_start_publishes_the_ca_and_serves_a_leaf():
    cluster, clock, notices = Cluster(), Clock(), Told()
    server = replica(cluster, clock, told=notices)
    assert (server.phase, server.trusted, server.certificate, server.leaf_not_after) == (None, False, None, None)
    await server.reconcile()
    assert notices.reasons() == ["CACreated", "LeafIssued", "CAPromoted"]
    assert (server.phase, server.trusted, server.last_error, server.untrusting) == (Phase.STEADY, True, None, ())
    for slow in (timedelta(0), timedelta(minutes=50)):  # clients with a slow clock accept the leaf, too
        assert accepted(cluster, server, clock.now - slow) == EVERY
    assert server.ca_not_after == START + 90 * DAY
    assert server.leaf_not_after == server.certificate.not_after == START + 12 * DAY
    assert cluster.writes == ["secret", "validating", "mutating", "secret"]
    assert set(cluster.data) == {"ca.crt", "ca.key"}
    await server.reconcile()
    assert (cluster.writes[4:], notices) == ([], [])


async def test_leaf_is_not_served_before_it_is_trusted():
    cluster, clock = Cluster(), Clock()
    cluster.forbidden = {"write mutating", "write validating"}
    server = replica(cluster, clock)
    waiting = asyncio.create_task(server.first_certificate())
    await server.reconcile()
    assert (server.certificate, server.leaf, server.trusted, waiting.done()) == (None, None, False, False)
    assert server.last_error == "validating: may not write validating; mutating: may not write mutating"
    assert server.phase == Phase.PUBLISHING
    cluster.forbidden.clear()
    await server.reconcile()
    assert await waiting is server.certificate
    assert server.trusted


async def test_unwritable_bundle_does_not_affect_other_bundles():
    """If one caBundle made all replicas unready, calls of the other webhooks would fail."""
    cluster, clock, notices = Cluster(), Clock(), Told()
    cluster.forbidden = {"write mutating"}
    server = replica(cluster, clock, told=notices)
    for _ in range(2):
        await server.reconcile()
        assert (server.trusted, server.untrusting) == (True, ("mutating",))
        assert accepted(cluster, server, clock.now) == {"validating"}
    assert server.last_error == "mutating: may not write mutating"
    assert notices.reasons() == ["CACreated", "LeafIssued", "CAPromoted", "CertificateProblem"]
    cluster.forbidden.clear()
    await server.reconcile()
    assert accepted(cluster, server, clock.now) == EVERY
    assert (server.trusted, server.untrusting, server.last_error) == (True, (), None)
    assert notices.reasons() == ["CertificatesRecovered"]


async def test_expiring_ca_is_replaced_although_one_bundle_cannot_be_written():
    cluster, clock, server, _ = await ready()
    cluster.forbidden = {"write mutating"}
    while clock.now < START + 89 * DAY:
        clock.now += DAY
        await server.reconcile()
        assert accepted(cluster, server, clock.now) == EVERY
    for _ in range(20):
        clock.now += DAY
        await server.reconcile()
        assert server.trusted
        assert accepted(cluster, server, clock.now) == {"validating"}
    cluster.forbidden.clear()
    await server.reconcile()
    assert accepted(cluster, server, clock.now) == EVERY


async def test_leaf_is_served_in_a_cluster_without_webhook_configurations():
    cluster, clock = Cluster(bundles=()), Clock()
    server = replica(cluster, clock)
    await server.reconcile()
    assert server.trusted
    cluster.bundles, cluster.versions = {"late": (b"",)}, {"late": 1}
    await server.reconcile()
    assert accepted(cluster, server, clock.now) == {"late"}


async def test_all_steps_of_a_rotation():
    cluster, clock, server, notices = await ready()
    first = server.leaf.issuer
    clock.now += 61 * DAY
    await server.reconcile()
    assert notices.reasons() == ["LeafIssued", "CACreated", "CAPublished"]
    assert (server.phase, server.leaf.issuer) == (Phase.WAITING, first)
    assert load(cluster.data).published_at == clock.now
    assert len(fingerprints(cluster.bundles["mutating"][0])) == 2
    clock.now += SETTINGS.grace - timedelta(seconds=1)
    await server.reconcile()
    assert (server.phase, server.leaf.issuer, notices) == (Phase.WAITING, first, [])
    clock.now += timedelta(seconds=1)
    await server.reconcile()
    assert notices.reasons() == ["CAPromoted", "LeafIssued"]
    assert server.phase == Phase.RETIRING
    assert server.leaf.issuer != first
    assert first in fingerprints(cluster.bundles["mutating"][0])
    clock.now += SETTINGS.leaf_lifetime
    await server.reconcile()
    assert server.phase == Phase.RETIRING
    clock.now += 10 * MINUTE
    notices.clear()
    await server.reconcile()
    assert notices.reasons() == ["CARetired"]
    assert server.phase == Phase.STEADY
    assert fingerprints(cluster.bundles["mutating"][0]) == {load(cluster.data).current.fingerprint}
    assert set(cluster.data) == {"ca.crt", "ca.key"}


async def test_grace_starts_again_after_a_bundle_lost_the_successor():
    cluster, clock, server, _ = await ready()
    before = cluster.bundles["mutating"][0]
    clock.now += 61 * DAY
    await server.reconcile()
    clock.now += MINUTE
    cluster.overwrite("mutating", before)
    await server.reconcile()
    assert (server.phase, load(cluster.data).published_at) == (Phase.WAITING, clock.now)


async def test_replicas_renew_their_leaves_at_different_times():
    cluster, clock, server, _ = await ready()
    two = SelfManaged(cluster, [HOST], settings=SETTINGS, clock=clock, random=Random(2))
    await two.reconcile()
    due = [server.leaf.renew_at - START, two.leaf.renew_at - START]
    assert due[0] != due[1]
    assert all(SETTINGS.leaf_lifetime * 0.57 <= when <= SETTINGS.leaf_lifetime * 0.67 for when in due)
    before = server.leaf
    clock.now = before.renew_at - timedelta(seconds=1)
    await server.reconcile()
    assert server.leaf is before
    clock.now = before.renew_at
    await server.reconcile()
    assert (server.leaf.issuer, server.leaf_not_after) == (before.issuer, clock.now.replace(microsecond=0) + 12 * DAY)
    assert server.certificate.not_after == server.leaf_not_after
    assert server.leaf.certificate.serial_number != before.certificate.serial_number


async def test_leaves_are_not_renewed_by_an_expiring_ca():
    cluster, clock, server, _ = await ready()
    cluster.forbidden = {"write the Secret"}
    clock.now += 85 * DAY
    await server.reconcile()
    assert server.leaf_not_after == server.ca_not_after
    clock.now += 4 * DAY
    leaf = server.leaf
    await server.reconcile()
    assert server.leaf is leaf


async def test_loop_runs_a_pass_in_each_interval():
    passes = asyncio.Queue()
    settings = replace(SETTINGS, interval=timedelta(milliseconds=5))
    server = replica(Cluster(), Clock(), settings=settings, after_pass=lambda: passes.put_nowait(1))
    task = asyncio.create_task(server.run())
    assert [await passes.get() for _ in range(5)] == [1] * 5
    task.cancel()


async def test_loop_retries_sooner_after_a_failure():
    cluster, passes = Cluster(), asyncio.Queue()
    cluster.down = True
    settings = replace(SETTINGS, interval=HOUR)
    server = replica(cluster, Clock(), settings=settings, after_pass=lambda: passes.put_nowait(server.last_error))
    task = asyncio.create_task(server.run())
    assert await passes.get() == "the API server does not answer"
    cluster.down = False
    assert await passes.get() is None
    task.cancel()


async def test_repr_has_no_private_key():
    cluster, _, server, _ = await ready()
    secret = await cluster.read_secret()
    text = f"{secret!r} {server.leaf!r} {load(secret.data)!r}"
    assert "PRIVATE" not in text


@pytest.mark.parametrize("jump", [400 * DAY, -400 * DAY])
async def test_replica_with_a_wrong_clock_uses_the_api_servers_time(jump):
    right = Clock()
    cluster, wrong, notices = Cluster(clock=right), Clock(START + jump), Told()
    server, two = replica(cluster, right), replica(cluster, wrong, told=notices)
    await server.reconcile()
    writes = list(cluster.writes)
    await two.reconcile()
    assert cluster.writes == writes
    assert accepted(cluster, two, right.now) == EVERY
    assert (two.trusted, two.clock_offset, two.now) == (True, -jump, right.now)
    assert notices.reasons() == ["ClockDiffers", "LeafIssued"]
    await two.reconcile()
    assert notices == []


async def test_one_pass_repairs_everything_after_a_clock_jump():
    """After a clock jump, clients fail only until the next pass."""
    cluster, clock, server, _ = await ready()
    for jump in (400 * DAY, -400 * DAY, 100 * DAY, -20 * DAY, -200 * DAY):
        clock.now += jump
        await server.reconcile()
        assert server.trusted, jump
        assert accepted(cluster, server, clock.now) == EVERY
        await server.reconcile()
        clock.now += SETTINGS.grace
        await server.reconcile()
        assert server.phase in {Phase.RETIRING, Phase.STEADY}
        assert accepted(cluster, server, clock.now) == EVERY
    # The clock jumped back, so the stored retirement time may be in the future. The old CA must still be removed.
    clock.now += SETTINGS.leaf_lifetime + HOUR
    await server.reconcile()
    assert server.phase == Phase.STEADY


async def test_ca_expired_during_downtime_is_replaced():
    """The grace time is not needed, because no leaf is served."""
    cluster, clock, _, _ = await ready()
    clock.now += 500 * DAY
    server = replica(cluster, clock)
    await server.reconcile()
    assert (server.trusted, server.phase) == (True, Phase.RETIRING)
    assert accepted(cluster, server, clock.now) == EVERY


async def test_overwritten_bundle_is_restored():
    cluster, _, server, notices = await ready()
    ours = cluster.bundles["mutating"][0]
    for pem in (b"", b"nonsense", Authority("test CA", lifetime=DAY).certificate_pem):
        cluster.overwrite("mutating", pem)
        await server.reconcile()
        assert cluster.bundles["mutating"] == (ours, ours)
        assert notices.reasons() == ["CABundleRestored"]
    # A foreign CA next to the service's CA is removed, although no call failed.
    cluster.overwrite("mutating", ours + Authority("other", lifetime=DAY).certificate_pem)
    await server.reconcile()
    assert cluster.bundles["mutating"] == (ours, ours)
    # A different order or spacing is not a change.
    cluster.overwrite("mutating", b"\n" + ours)
    await server.reconcile()
    assert cluster.bundles["mutating"] == (b"\n" + ours,) * 2
    assert notices == []


async def test_trust_is_read_from_the_live_bundles():
    cluster, clock, server, _ = await ready()
    cluster.overwrite("mutating", b"")
    cluster.forbidden = {"write mutating"}
    await server.reconcile()
    assert (server.trusted, server.untrusting) == (True, ("mutating",))
    cluster.overwrite("validating", b"")
    cluster.forbidden = {"write mutating", "write validating"}
    await server.reconcile()
    assert (server.trusted, server.untrusting) == (False, ("validating", "mutating"))
    cluster.forbidden.clear()
    await server.reconcile()
    assert (server.trusted, server.untrusting) == (True, ())
    cluster.down = True
    clock.now += 11 * DAY
    await server.reconcile()
    assert server.trusted  # according to the caBundles that were read last
    clock.now = server.leaf_not_after
    assert not server.trusted  # the leaf has expired
    clock.now = server.ca_not_after
    await server.reconcile()
    assert not server.trusted, "a CA that has expired signs nothing"


async def test_deleted_secret_gets_a_new_ca_when_it_is_created_again():
    cluster, clock, server, notices = await ready()
    leaf, bundles = server.leaf, dict(cluster.bundles)
    cluster.data = None
    await server.reconcile()
    assert (server.phase, server.last_error, server.leaf, server.trusted) == (Phase.MISSING, NO_SECRET, leaf, True)
    assert cluster.bundles == bundles
    cluster.set_data({})
    notices.clear()
    await server.reconcile()
    # The new CA is the successor, and the current CA remains in use.
    assert (server.phase, server.leaf) == (Phase.WAITING, leaf)
    assert accepted(cluster, server, clock.now) == EVERY
    clock.now += SETTINGS.grace
    await server.reconcile()
    assert notices.reasons() == ["CACreated", "CAPublished", "CertificatesRecovered", "CAPromoted", "LeafIssued"]
    assert server.leaf.issuer != leaf.issuer
    assert accepted(cluster, server, clock.now) == EVERY


@pytest.mark.parametrize("pem", [b"", b"nonsense", Authority("foreign", lifetime=DAY).certificate_pem])
@pytest.mark.parametrize("overwritten", [EVERY, {"mutating"}])
async def test_overwritten_bundles_are_restored_without_the_secret(pem, overwritten):
    cluster, clock, server, notices = await ready()
    leaf, bundles = server.leaf, dict(cluster.bundles)
    cluster.data = None
    for name in overwritten:
        cluster.overwrite(name, pem)
    await server.reconcile()
    assert cluster.bundles == bundles
    assert (server.leaf, server.untrusting, server.trusted, server.last_error) == (leaf, (), True, NO_SECRET)
    assert accepted(cluster, server, clock.now) == EVERY
    assert notices.reasons() == ["CABundleRestored"] * len(overwritten) + ["CertificateProblem"]


async def test_bundle_that_trusts_the_leaf_is_not_changed_without_the_secret():
    cluster, _, server, _ = await ready()
    cluster.data = None
    both = cluster.bundles["mutating"][0] + Authority("foreign", lifetime=DAY).certificate_pem
    cluster.overwrite("mutating", both)
    await server.reconcile()
    assert cluster.bundles["mutating"] == (both, both)


async def test_unwritable_bundle_is_reported_without_the_secret():
    cluster, clock, server, _ = await ready()
    cluster.data = None
    for name in EVERY:
        cluster.overwrite(name, b"")
    cluster.forbidden = {"write mutating"}
    await server.reconcile()
    assert server.last_error == f"{NO_SECRET}; mutating: may not write mutating"
    assert (server.untrusting, accepted(cluster, server, clock.now)) == (("mutating",), {"validating"})


async def test_replicas_in_the_middle_of_a_rotation_restore_the_same_bundles_without_the_secret():
    """One replica has not read the Secret since the new CA was promoted. The other serves a leaf of the new CA."""
    cluster, clock, server, _ = await ready()
    late = replica(cluster, clock)
    await late.reconcile()
    await promote(clock, server)
    assert server.leaf.issuer != late.leaf.issuer
    cluster.data = None
    for name in EVERY:
        cluster.overwrite(name, b"")
    cluster.writes.clear()
    for instance in (late, server, late, server):
        await instance.reconcile()
    assert accepted(cluster, server, clock.now) == accepted(cluster, late, clock.now) == EVERY
    assert cluster.writes == ["validating", "mutating"] * 2  # each replica wrote each caBundle once


async def test_replica_that_never_read_the_secret_publishes_nothing():
    cluster = Cluster()
    cluster.data = None
    server = replica(cluster, Clock())
    await server.reconcile()
    assert (cluster.writes, server.last_error, server.trusted) == ([], NO_SECRET, False)


async def test_leaves_are_renewed_while_the_secret_is_missing():
    """Clients still trust the CA in their caBundles, so their calls must not fail."""
    cluster, clock, server, notices = await ready()
    leaf = server.leaf
    cluster.data = None
    for _ in range(12):
        clock.now += SETTINGS.leaf_lifetime / 3
        await server.reconcile()
        assert (server.phase, server.last_error, server.trusted) == (Phase.MISSING, NO_SECRET, True)
        assert accepted(cluster, server, clock.now) == EVERY
    assert server.leaf != leaf
    assert server.leaf.issuer == leaf.issuer
    assert "LeafIssued" in notices.reasons()
    assert cluster.data is None


@pytest.mark.parametrize("call", ["read the Secret", "read caBundles"])
async def test_leaves_are_renewed_while_nothing_can_be_read(call):
    """The outage is longer than the lifetime of a leaf. The API server still trusts the CA that signed the old leaf."""
    cluster, clock, server, notices = await ready()
    leaf = server.leaf
    cluster.forbidden = {call}
    for _ in range(12):
        clock.now += SETTINGS.leaf_lifetime / 3
        await server.reconcile()
        assert server.last_error
        assert server.trusted
        assert accepted(cluster, server, clock.now) == EVERY
    assert (server.leaf != leaf, server.leaf.issuer) == (True, leaf.issuer)
    assert notices.reasons().count("LeafIssued") > 3


async def test_leaves_are_renewed_without_the_secret_despite_an_emptied_bundle():
    """One caBundle was emptied and cannot be written. Only calls with this caBundle fail."""
    cluster, clock, server, _ = await ready()
    issuer = server.leaf.issuer
    cluster.forbidden = {"write mutating"}
    cluster.overwrite("mutating", b"")
    for secret in (cluster.data, None):
        cluster.data = secret
        for _ in range(6):
            clock.now += SETTINGS.leaf_lifetime / 3
            await server.reconcile()
            assert (server.trusted, server.untrusting, server.leaf.issuer) == (True, ("mutating",), issuer)
            assert accepted(cluster, server, clock.now) == {"validating"}


async def test_replica_that_starts_while_the_secret_is_restored_does_not_wait_for_the_grace():
    cluster, clock, server, _ = await ready()
    cluster.set_data({})
    other = replica(cluster, clock)
    await other.reconcile()
    assert other.trusted
    assert (other.phase, other.leaf.issuer) == (Phase.WAITING, load(cluster.data).successor.fingerprint)
    await server.reconcile()
    assert server.leaf.issuer != other.leaf.issuer
    assert accepted(cluster, server, clock.now) == accepted(cluster, other, clock.now) == EVERY


async def test_leaf_is_trusted_after_the_secret_is_restored_from_a_backup():
    cluster, clock, server, notices = await ready()
    served_before = server.leaf.issuer
    backup = Authority("test CA", lifetime=80 * DAY, now=clock.now)
    cluster.set_data({"ca.crt": backup.certificate_pem, "ca.key": backup.key_pem})
    await server.reconcile()
    assert notices.reasons() == ["CARepaired", "LeafIssued"]
    assert fingerprints(cluster.bundles["mutating"][0]) == {served_before, backup.fingerprint}
    assert accepted(cluster, server, clock.now) == EVERY


async def test_slow_replica_does_not_undo_a_rotation():
    """The replica reads the Secret before the rotation and writes a caBundle after the rotation."""
    cluster, clock, server, _ = await ready()
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
            await server.reconcile()
            cluster.watch = everywhere
        return secret

    def everywhere():
        successor = load(cluster.data).successor.fingerprint
        assert all(successor in fingerprints(pem) for pems in cluster.bundles.values() for pem in pems)

    # The late replica must have something to write. Otherwise it could not undo the rotation.
    cluster.overwrite("mutating", b"")
    cluster.read_secret = read_then_sleep
    await late.reconcile()
    assert rotated
    assert cluster.conflicts == 1
    everywhere()


async def test_damaged_old_certificate_is_restored_from_the_bundles():
    cluster, clock, server, notices = await ready()
    first = server.leaf.issuer
    await promote(clock, server)
    notices.clear()
    cluster.set_data(cluster.data | {"old-ca.crt": b"nonsense", "old-ca.retired-at": b"nonsense"})
    await server.reconcile()
    (notice,) = notices
    assert (notice.reason, notice.warning) == ("CARepaired", True)
    assert "old-ca.crt: the certificate is not PEM, or damaged" in notice.message
    # The caBundles still have the old certificate.
    assert first in fingerprints(cluster.data["old-ca.crt"])
    assert server.phase == Phase.RETIRING


async def test_pass_ends_after_too_many_conflicts():
    cluster, clock, server, _ = await ready()
    clock.now += 61 * DAY
    read = cluster.read_secret

    async def read_and_change():
        secret = await read()
        cluster.version += 1
        return secret

    cluster.read_secret = read_and_change
    await server.reconcile()
    assert server.last_error == "other replicas or users kept changing the objects for 20 steps"
    assert cluster.conflicts == 20


async def test_bundle_deleted_during_its_write_is_ignored():
    cluster, _, server, _ = await ready()
    cluster.overwrite("mutating", b"")
    write = cluster.write_bundle

    async def gone(bundle, pem):
        cluster.bundles.pop(bundle.name, None)
        return await write(bundle, pem)

    cluster.write_bundle = gone
    await server.reconcile()
    assert (server.last_error, server.trusted, set(cluster.bundles)) == (None, True, {"validating"})
