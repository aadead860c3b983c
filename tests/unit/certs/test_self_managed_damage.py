"""What is deleted, overwritten, restored from a backup or written at once by two is put right."""

import pytest

from certs.authority import Authority
from certs.pem import fingerprints
from certs.rotation import Phase
from certs.self_managed import NO_SECRET
from certs.state import load
from tests.support.ca_store import DAY, Clock, Cluster
from tests.support.self_managed import EVERY, SETTINGS, accepted, ready, replica


async def test_an_overwritten_bundle_is_put_back():
    cluster, _, one, told = await ready()
    ours = cluster.bundles["mutating"][0]
    for pem in (b"", b"nonsense", Authority("test CA", lifetime=DAY).certificate_pem):
        cluster.overwrite("mutating", pem)
        await one.reconcile()
        assert cluster.bundles["mutating"] == (ours, ours)
        assert told.reasons() == ["CABundleRestored"]
    # A stranger's CA beside ours goes, but nothing was broken.
    cluster.overwrite("mutating", ours + Authority("other", lifetime=DAY).certificate_pem)
    await one.reconcile()
    assert cluster.bundles["mutating"] == (ours, ours)
    # Another order or spacing is no change.
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
    assert one.trusted  # as far as is known
    clock.now = one.leaf_not_after
    assert not one.trusted  # it has expired
    clock.now = one.ca_not_after
    await one.reconcile()
    assert not one.trusted, "a CA that has expired signs nothing"


async def test_problems_are_told_once():
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
    # A new CA, beside the one that is still in use.
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
    """What the caBundles trust is still trusted: nobody may be kept out."""
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
    """An API server that is gone for longer than a leaf lives calls with what it trusted, once it is back."""
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
    """One caBundle was emptied and cannot be written: that keeps its own clients out, and no others."""
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


async def test_keys_of_others_in_the_secret_stay():
    cluster = Cluster()
    cluster.data = {"tls.crt": b"", "tls.key": b""}
    one = replica(cluster, Clock())
    await one.reconcile()
    assert set(cluster.data) == {"tls.crt", "tls.key", "ca.crt", "ca.key"}


async def test_a_replica_that_was_late_takes_nothing_back():
    """It decides on a Secret from before the rotation, and wants to write a caBundle after it."""
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

    # Something to write: otherwise being late would do no harm anyway.
    cluster.overwrite("mutating", b"")
    cluster.read_secret = read_then_sleep
    await late.reconcile()
    assert rotated
    assert cluster.conflicts == 1
    everywhere()


async def test_damage_to_what_is_old():
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
    # The caBundles still know it.
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
    assert one.last_error == "no end of changes by others after 20 steps"
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
