"""Reads and checks certificates and keys in PEM."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import NameOID

# The exceptions that reading an absent or damaged extension raises.
NO_EXTENSION = (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, ValueError)


class CertificateError(ValueError):
    """The message says what is wrong with the certificate or key."""


def load_certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """All certificates in `pem`; CertificateError if there is none, or one is damaged."""
    try:
        certificates = tuple(x509.load_pem_x509_certificates(pem))
        for certificate in certificates:
            # The library parses these parts on first access.
            _ = (
                certificate.subject,
                certificate.issuer,
                certificate.not_valid_before_utc,
                certificate.not_valid_after_utc,
            )
    except (ValueError, x509.InvalidVersion):
        raise CertificateError("the certificate is not PEM, or damaged") from None
    return certificates


def load_private_key(pem: bytes) -> PrivateKeyTypes:
    """The key in `pem`; CertificateError if the key is damaged, encrypted or of an unknown kind."""
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise CertificateError("the private key is encrypted; give one without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise CertificateError("the private key is not PEM, or damaged") from None


def load_pair(chain_pem: bytes, key_pem: bytes) -> tuple[tuple[x509.Certificate, ...], PrivateKeyTypes]:
    """The chain (leaf first) and the leaf's key; CertificateError if one is damaged or the key is not the leaf's."""
    chain, key = load_certificates(chain_pem), load_private_key(key_pem)
    try:
        belongs = key.public_key() == chain[0].public_key()
    except (ValueError, UnsupportedAlgorithm):  # the public key in the certificate cannot be read
        raise CertificateError("the certificate is not PEM, or damaged") from None
    if not belongs:
        raise CertificateError("the private key does not belong to the certificate")
    return chain, key


def to_pem(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of the certificate, in lower-case hexadecimal."""
    return certificate.fingerprint(hashes.SHA256()).hex()


@lru_cache(maxsize=64)
def fingerprints(pem: bytes) -> frozenset[str]:
    """The fingerprints of the CAs in a caBundle; empty if a CA is damaged, because clients then trust no CA in it."""
    return frozenset(map(fingerprint, readable_certificates(pem)))


def readable_certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """The certificates; empty if `pem` is empty or damaged."""
    try:
        return load_certificates(pem)
    except CertificateError:
        return ()


def common_name(name: x509.Name) -> str:
    """The first common name; empty if there is none."""
    return next((str(attribute.value) for attribute in name.get_attributes_for_oid(NameOID.COMMON_NAME)), "")


def hosts(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except NO_EXTENSION:
        return ()
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)


def covers(certificate: x509.Certificate, host: str) -> bool:
    """Whether clients that call `host` accept the certificate's names. In a name, only the first label can be `*`."""
    wildcard = "*." + host.partition(".")[2]
    return any(name.lower() in {host.lower(), wildcard.lower()} for name in hosts(certificate))


def chains_to(chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate]) -> bool:
    """Whether signatures connect the first certificate of `chain` to a root, regardless of validity and extensions."""
    link, rest = chain[0], list(chain[1:])
    while True:
        if link in roots or any(_issued(link, root) for root in roots):
            return True
        issuer = next((candidate for candidate in rest if _issued(link, candidate)), None)
        if issuer is None:
            return False
        rest.remove(issuer)
        link = issuer


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True
