from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from certs.authority import Authority

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def authority(**kwargs):
    return Authority("test CA", **({"lifetime": 100 * DAY, "now": NOW} | kwargs))


def load(pem):
    return x509.load_pem_x509_certificate(pem)


def verify(pair, ca, subject, *, at=NOW):
    """Verify with an independent implementation of RFC 5280 that is at least as strict as Go's."""
    builder = PolicyBuilder().store(Store([load(ca.certificate_pem)])).time(at)
    builder.build_server_verifier(subject).verify(load(pair.certificate_pem), [])


def extension(certificate, kind):
    return certificate.extensions.get_extension_for_class(kind)


@pytest.mark.parametrize(
    ("host", "subject"),
    [
        ("webhook.training.svc", x509.DNSName("webhook.training.svc")),
        ("127.0.0.1", x509.IPAddress(ip_address("127.0.0.1"))),
        ("::1", x509.IPAddress(ip_address("::1"))),
    ],
)
def test_leaf_is_valid_for_each_of_its_hosts(host, subject):
    ca = authority()
    verify(ca.issue(["first.example", host], lifetime=DAY, now=NOW), ca, subject)


def test_leaf_is_invalid_for_another_host_or_ca():
    ca = authority()
    pair = ca.issue(["a.example"], lifetime=DAY, now=NOW)
    with pytest.raises(VerificationError):
        verify(pair, ca, x509.DNSName("b.example"))
    with pytest.raises(VerificationError):
        verify(pair, authority(), x509.DNSName("a.example"))


@pytest.mark.parametrize(
    ("offset", "valid"),
    [
        (timedelta(minutes=-6), False),
        (timedelta(minutes=-4), True),  # a client with a slow clock
        (DAY - timedelta(seconds=1), True),
        (DAY + timedelta(seconds=1), False),
    ],
)
def test_leaf_is_valid_from_five_minutes_before_its_issue_until_its_end(offset, valid):
    ca = authority()
    pair = ca.issue(["a.example"], lifetime=DAY, now=NOW)
    assert pair.not_after == NOW + DAY
    with nullcontext() if valid else pytest.raises(VerificationError):
        verify(pair, ca, x509.DNSName("a.example"), at=NOW + offset)


def test_leaf_never_outlives_its_ca():
    ca = authority(lifetime=10 * DAY)
    pair = ca.issue(["a.example"], lifetime=90 * DAY, now=NOW + DAY)
    assert pair.not_after == ca.not_after == NOW + 10 * DAY


def test_extensions_of_the_ca():
    ca = load(authority().certificate_pem)
    constraints = extension(ca, x509.BasicConstraints)
    usage = extension(ca, x509.KeyUsage)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    assert (usage.critical, usage.value.key_cert_sign, usage.value.crl_sign) == (True, True, True)
    assert not usage.value.digital_signature


def test_extensions_of_a_leaf():
    ca = authority()
    leaf = load(ca.issue(["a.example"], lifetime=DAY, now=NOW).certificate_pem)
    usage = extension(leaf, x509.KeyUsage)
    assert not extension(leaf, x509.BasicConstraints).value.ca
    assert (usage.critical, usage.value.digital_signature, usage.value.key_cert_sign) == (True, True, False)
    assert list(extension(leaf, x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.SERVER_AUTH]
    issuer = extension(load(ca.certificate_pem), x509.SubjectKeyIdentifier).value
    assert extension(leaf, x509.AuthorityKeyIdentifier).value.key_identifier == issuer.digest
    assert leaf.signature_hash_algorithm.name == "sha256"


def test_keys_and_serial_numbers_are_new_each_time():
    ca = authority()
    pairs = [ca.issue(["a.example"], lifetime=DAY, now=NOW) for _ in range(3)]
    leaves = [load(pair.certificate_pem) for pair in pairs]
    assert len({leaf.serial_number for leaf in leaves}) == 3
    assert len({pair.key_pem for pair in pairs}) == 3
    for pair, leaf in zip(pairs, leaves, strict=True):
        assert load_pem_private_key(pair.key_pem, None).public_key() == leaf.public_key()
        assert leaf.public_key().curve.name == "secp256r1"


def test_long_host_name_is_cut_only_in_the_common_name():
    host = ".".join(["a" * 50] * 4)
    ca = authority()
    verify(ca.issue([host], lifetime=DAY, now=NOW), ca, x509.DNSName(host))


def test_leaf_without_hosts_is_an_error():
    with pytest.raises(ValueError, match="at least one host"):
        authority().issue([], lifetime=DAY)
