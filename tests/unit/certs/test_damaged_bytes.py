"""A certificate with one changed byte is used, repaired or rejected. It causes no unexpected exception."""

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
# The library warns about negative serial numbers, because its future versions will reject such certificates.
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
async def test_damaged_byte_in_the_secret_is_repaired(slot: str, place: int, by: int) -> None:
    cluster, clock = Cluster(), Clock()
    cluster.set_data({f"{slot}.crt": damaged(CA_DER, place, by), f"{slot}.key": CA.key_pem})
    instance = replica(cluster, clock)
    for _ in range(3):
        await instance.reconcile()
    assert instance.last_error is None
    assert not load(cluster.data).damage
    instance.certificate.context  # noqa: B018 - raises if no leaf is served


@PROPERTY
@given(place=PLACES, by=BITS, emptied=st.booleans())
@example(place=SUBJECT - 2, by=1, emptied=True)
async def test_damaged_byte_in_a_bundle_is_repaired(place: int, by: int, emptied: bool) -> None:
    """If the Secret is empty as well, the old CAs are read from the caBundles."""
    cluster, clock, instance, _ = await ready()
    cluster.overwrite("mutating", damaged(CA_DER, place, by))
    if emptied:
        cluster.set_data({})
    await instance.reconcile()
    assert (instance.last_error, accepted(cluster, instance, clock.now)) == (None, EVERY)


@PROPERTY
@given(place=PLACES, by=BITS)
def test_damaged_byte_in_a_served_certificate_is_rejected_or_harmless(place: int, by: int) -> None:
    try:
        (leaf,), _ = pem.load_pair(damaged(LEAF_DER, place, by), LEAF.key_pem)
    except pem.CertificateError:
        return
    assert pem.covers(leaf, "webhook.training.svc") in {True, False}
    assert pem.chains_to([leaf], [CA.certificate]) in {True, False}
