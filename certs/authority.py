"""A small certificate authority in memory. All keys are ECDSA P-256.

The extensions follow RFC 5280 section 4.2. Go and OpenSSL's strict mode require key identifiers, key usage and subject
alternative names. Both ignore the common name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.limits import MAX_COMMON_NAME_CHARACTERS
from certs.pem import NO_EXTENSION, CertificateError, fingerprint, load_pair

# A verifier with a slow clock would reject a certificate that is valid only from now on.
CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both in PEM. `not_after` is in UTC."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)
    not_after: datetime


class Authority:
    """A CA that signs serving certificates."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def __init__(
        self, common_name: str, *, lifetime: timedelta, now: datetime | None = None, backdate: timedelta = CLOCK_SKEW
    ) -> None:
        """A new CA, valid from `now` - `backdate` to `now` + `lifetime`. `now` defaults to the clock."""
        self.key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name)
        now = now or datetime.now(UTC)
        usage = _key_usage(digital_signature=False, certificates=True)
        self.certificate = (
            _builder(name, name, self.key.public_key(), now - backdate, now + lifetime)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self.key, hashes.SHA256())
        )

    @classmethod
    def load(cls, certificate_pem: bytes, key_pem: bytes) -> "Authority":
        """A stored CA; CertificateError if the certificate is not a CA certificate or the key does not match."""
        (certificate, *_), key = load_pair(certificate_pem, key_pem)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise CertificateError("the private key is not an EC key")
        try:
            ca = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
            certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        except NO_EXTENSION:
            ca = False
        if not ca:
            raise CertificateError("the certificate is not a CA certificate")
        authority = cls.__new__(cls)
        authority.certificate, authority.key = certificate, key
        return authority

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """Anyone with this key can pretend to be the webhook."""
        return _key_pem(self.key)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.certificate)

    @property
    def not_after(self) -> datetime:
        """In UTC."""
        return self.certificate.not_valid_after_utc

    def usable(self, now: datetime) -> bool:
        return self.certificate.not_valid_before_utc <= now < self.not_after

    def issue(
        self,
        hosts: Sequence[str],
        *,
        lifetime: timedelta,
        now: datetime | None = None,
        backdate: timedelta = CLOCK_SKEW,
    ) -> KeyPair:
        """A serving certificate for `hosts` (DNS names and IP addresses, at least one) with a new key.

        It is valid from `now` - `backdate` to `now` + `lifetime`, but not longer than the CA.
        """
        if not hosts:
            raise ValueError("a serving certificate needs at least one host")
        key = ec.generate_private_key(ec.SECP256R1())
        now = now or datetime.now(UTC)
        not_before = max(now - backdate, self.certificate.not_valid_before_utc)
        not_after = min(now + lifetime, self.not_after)
        issuer = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        certificate = (
            _builder(_name(hosts[0]), self.certificate.subject, key.public_key(), not_before, not_after)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(digital_signature=True, certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return KeyPair(
            certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
            key_pem=_key_pem(key),
            not_after=certificate.not_valid_after_utc,
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, not_before: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
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
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:MAX_COMMON_NAME_CHARACTERS])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
