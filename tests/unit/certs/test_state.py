from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from certs.authority import Authority
from certs.limits import MAX_OLD_AUTHORITIES
from certs.pem import fingerprint
from certs.rotation import Publish, RotationSettings, plan
from certs.state import KEYS, State, load
from tests.support.tls import self_signed_rsa

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
SETTINGS = RotationSettings(name="test CA")


def authority(now=NOW, name="test CA"):
    return Authority(name, lifetime=100 * DAY, now=now)


ONE, TWO, THREE = authority(), authority(), authority()
FULL = State(
    current=ONE,
    successor=TWO,
    published_at=NOW,
    old=(THREE.certificate,),
    retired_at=NOW - DAY,
    other={"tls.crt": b"theirs"},
)


def test_written_state_is_read_back():
    state = load(FULL.to_data())
    assert set(FULL.to_data()) == KEYS | {"tls.crt"}
    assert (state.current.fingerprint, state.successor.fingerprint) == (ONE.fingerprint, TWO.fingerprint)
    assert state.current.key_pem == ONE.key_pem
    assert (state.published_at, state.retired_at, state.damage) == (NOW, NOW - DAY, ())
    assert state.bundle == FULL.bundle == (ONE.certificate, TWO.certificate, THREE.certificate)
    assert state.to_data() == FULL.to_data()
    assert load({}) == State()


def leaf():
    pair = ONE.issue(["a.example"], lifetime=DAY, now=NOW)
    return {"ca.crt": pair.certificate_pem, "ca.key": pair.key_pem}


def rsa_ca():
    certificate, key = self_signed_rsa("test CA", x509.BasicConstraints(ca=True, path_length=0), not_before=NOW)
    return {"ca.crt": certificate, "ca.key": key}


PAIR = "ca.crt and ca.key: "
NO_CERTIFICATE = PAIR + "the certificate is not PEM, or damaged"
NO_KEY = PAIR + "the private key is not PEM, or damaged"


DAMAGED = {
    "half a certificate": ({"ca.crt": ONE.certificate_pem[:200]}, NO_CERTIFICATE, 0),
    "half a key": ({"ca.key": ONE.key_pem[:60]}, NO_KEY, 1),
    "key of another CA": ({"ca.key": TWO.key_pem}, PAIR + "the private key does not belong to the certificate", 1),
    "leaf as CA": (leaf(), PAIR + "the certificate is not a CA certificate", 1),
    "RSA key": (rsa_ca(), PAIR + "the private key is not an EC key", 1),
    "no PEM": ({"ca.crt": b"\xff\x00", "ca.key": b"\xff"}, NO_CERTIFICATE, 0),
}


@pytest.mark.parametrize(("change", "damage", "old_cas"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_ca_does_not_sign_and_stays_trusted(change, damage, old_cas):
    state = load(
        {"ca.crt": ONE.certificate_pem, "ca.key": ONE.key_pem, "old-ca.retired-at": b"2020-01-01T00:00:00Z"} | change
    )
    assert (state.current, state.damage, len(state.old)) == (None, (damage,), old_cas)
    # The stored retirement time belongs to older CAs. It is dropped, because the damaged CA signed until now.
    assert (state.retired_at is None) == bool(old_cas)


def test_removed_key_is_not_reported_as_damage():
    state = load({"ca.crt": ONE.certificate_pem, "old-ca.retired-at": b"2020-01-01T00:00:00Z"})
    assert (state.current, state.damage, state.key_removed, state.retired_at) == (None, (), True, None)
    assert [fingerprint(each) for each in state.old] == [ONE.fingerprint]
    renewed = state.with_successor(TWO, NOW)
    assert not renewed.key_removed
    assert not load(renewed.to_data()).key_removed
    assert not load(FULL.to_data()).key_removed


@pytest.mark.parametrize(
    ("change", "damage"),
    [
        ({"next-ca.published-at": b"soon"}, "next-ca.published-at: not a time"),
        ({"next-ca.published-at": b"0001-01-01T00:00:00+14:00"}, "next-ca.published-at: not a time"),
        ({"old-ca.retired-at": b"\xff"}, "old-ca.retired-at: not a time"),
        ({"old-ca.crt": b"nonsense"}, "old-ca.crt: the certificate is not PEM, or damaged"),
        ({"next-ca.crt": ONE.certificate_pem, "next-ca.key": ONE.key_pem}, "next-ca.crt: the same as ca.crt"),
        ({"next-ca.key": b""}, "next-ca.crt and next-ca.key: the private key is not PEM, or damaged"),
    ],
)
def test_damage_outside_the_signing_ca_does_not_affect_this_ca(change, damage):
    state = load(FULL.to_data() | change)
    assert (state.current.fingerprint, state.damage) == (ONE.fingerprint, (damage,))


def test_each_old_ca_is_kept_once_up_to_a_maximum_number():
    many = [authority(NOW + number * DAY).certificate for number in range(MAX_OLD_AUTHORITIES + 3)]
    state = State(old=tuple(many[:3])).with_old([*many[2:], many[0]], NOW)
    assert state.old == tuple(many[3:])
    assert state.retired_at == NOW


anything = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([ONE.certificate_pem, ONE.key_pem, TWO.certificate_pem, b"2026-03-01T12:00:00+00:00", b""]),
)


@given(st.dictionaries(st.sampled_from([*sorted(KEYS), "other"]), anything))
def test_any_content_ends_with_one_valid_ca(data):
    """The Secret starts with any content. A few steps later, one CA signs and nothing is damaged."""
    state = load(data)
    now = NOW
    for _ in range(6):
        step = plan(state, [], now, SETTINGS)
        if step is None:
            now += SETTINGS.leaf_lifetime + DAY / 2
            continue
        assert not isinstance(step, Publish)
        state = step.state
        if not state.successor and not state.current:
            state = state.with_successor(authority(now), now)
        state = load(state.to_data())
        assert not state.damage
    assert state.current
    assert not state.successor
    assert fingerprint(state.current.certificate) not in map(fingerprint, state.old)
