"""A certificate with one changed byte is either used, or ignored and reported. Everything else works."""

import asyncio
from base64 import encodebytes

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import example, given
from hypothesis import strategies as st

from certs import pem
from certs.authority import Authority
from certs.state import load
from tests.support.ca_store import DAY, START, Clock, Cluster
from tests.support.self_managed import EVERY, SETTINGS, accepted, ready, replica
from tests.support.strategies import PROPERTY

CA = Authority(SETTINGS.name, lifetime=90 * DAY, now=START)
CA_DER = CA.certificate.public_bytes(Encoding.DER)
LEAF = CA.issue(["webhook.training.svc", "10.0.0.1"], lifetime=DAY, now=START)
LEAF_DER = pem.load_certificates(LEAF.certificate_pem)[0].public_bytes(Encoding.DER)
CURVE = CA_DER.index(bytes.fromhex("2a8648ce3d030107"))
SUBJECT = CA_DER.rindex(SETTINGS.name.encode())
# If the serial number becomes negative, the library announces that it will reject such certificates in future.
pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


def damaged(der: bytes, place: int, by: int) -> bytes:
    changed = bytearray(der)
    changed[place % len(der)] ^= by
    return b"-----BEGIN CERTIFICATE-----\n" + encodebytes(bytes(changed)) + b"-----END CERTIFICATE-----\n"


PLACES = st.integers(0, 1000)
BITS = st.integers(1, 255)


@PROPERTY
@given(slot=st.sampled_from(["ca", "next-ca", "old-ca"]), place=PLACES, by=BITS)
@example(slot="ca", place=CURVE + 7, by=1)
@example(slot="ca", place=SUBJECT - 2, by=1)
def test_the_secret(slot: str, place: int, by: int) -> None:
    asyncio.run(_is_put_right(slot, damaged(CA_DER, place, by)))


async def _is_put_right(slot: str, certificate: bytes) -> None:
    cluster, clock = Cluster(), Clock()
    cluster.set_data({f"{slot}.crt": certificate, f"{slot}.key": CA.key_pem})
    one = replica(cluster, clock)
    for _ in range(3):
        await one.reconcile()
    assert one.last_error is None
    assert not load(cluster.data).damage
    one.certificate.context  # noqa: B018 - it is served


@PROPERTY
@given(place=PLACES, by=BITS, emptied=st.booleans())
@example(place=SUBJECT - 2, by=1, emptied=True)
def test_a_ca_bundle(place: int, by: int, emptied: bool) -> None:
    """Also with an empty Secret, where the old CAs come from the caBundles."""
    asyncio.run(_bundle_is_put_right(damaged(CA_DER, place, by), emptied=emptied))


async def _bundle_is_put_right(bundle: bytes, *, emptied: bool) -> None:
    cluster, clock, one, _ = await ready()
    cluster.overwrite("mutating", bundle)
    if emptied:
        cluster.set_data({})
    await one.reconcile()
    assert (one.last_error, accepted(cluster, one, clock.now)) == (None, EVERY)


@PROPERTY
@given(place=PLACES, by=BITS)
def test_a_certificate_to_serve(place: int, by: int) -> None:
    try:
        (leaf,), _ = pem.load_pair(damaged(LEAF_DER, place, by), LEAF.key_pem)
    except pem.CertificateError:
        return
    assert pem.covers(leaf, "webhook.training.svc") in {True, False}
    assert pem.chains_to([leaf], [CA.certificate]) in {True, False}
