"""A CA that issues client certificates for API servers."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_PEM = serialization.Encoding.PEM


class ClientCa:
    """Issues only client certificates."""

    def __init__(self, name: str = "client CA") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = self._sign(self._name, self._key, usage)

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(_PEM)

    def pair(self, folder: Path, common_name: str, *dns: str) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        names = [x509.SubjectAlternativeName([x509.DNSName(each) for each in dns])] if dns else []
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = self._sign(name, key, usage, *names)
        paths = folder / f"{common_name}.crt", folder / f"{common_name}.key"
        paths[0].write_bytes(certificate.public_bytes(_PEM))
        no_encryption = serialization.NoEncryption()
        paths[1].write_bytes(key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, no_encryption))
        return paths

    def _sign(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())
