"""A small certificate authority in memory: ECDSA P-256 throughout, accepted by Go's x509 and by strict OpenSSL.

Extensions follow RFC 5280 section 4.2; Go and OpenSSL's strict mode want the key identifiers, the key usage and
subject alternative names, and never look at the common name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# A verifier whose clock is a little behind ours must not find the certificate "not yet valid".
CLOCK_SKEW = timedelta(minutes=5)
# X.520 allows no longer common name.
MAX_COMMON_NAME = 64


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both in PEM; `not_after` is when it stops being valid (UTC)."""

    certificate_pem: bytes
    key_pem: bytes
    not_after: datetime


class Authority:
    """A CA that signs serving certificates. Its key never leaves the process."""

    def __init__(self, common_name: str, *, lifetime: timedelta, now: datetime | None = None) -> None:
        """Make the CA's own certificate, valid from `now` (default: the clock) for `lifetime`."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(common_name)
        now = now or datetime.now(UTC)
        usage = _key_usage(digital_signature=False, certificates=True)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key(), now, now + lifetime)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate_pem(self) -> bytes:
        """The CA's certificate: what clients trust, and a webhook configuration's caBundle."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def not_after(self) -> datetime:
        """When the CA stops being valid (UTC)."""
        return self._certificate.not_valid_after_utc

    def issue(self, hosts: Sequence[str], *, lifetime: timedelta, now: datetime | None = None) -> KeyPair:
        """A serving certificate for `hosts` (DNS names and IP addresses, at least one) with a new key.

        It never outlives the CA: a leaf whose issuer has expired verifies nowhere.
        """
        if not hosts:
            raise ValueError("a serving certificate needs at least one host")
        key = ec.generate_private_key(ec.SECP256R1())
        now = now or datetime.now(UTC)
        not_after = min(now + lifetime, self.not_after)
        issuer = self._certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        certificate = (
            _builder(_name(hosts[0]), self._name, key.public_key(), now, not_after)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(digital_signature=True, certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return KeyPair(
            certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
            key_pem=key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
            not_after=certificate.not_valid_after_utc,
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, digital_signature: bool, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificates,
        crl_sign=certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:MAX_COMMON_NAME])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
