"""Identities in a test cluster: a certificate authority, and kubeconfigs for any user and groups.

Client certificates (CN = user, O = groups) need no restart of the API server and work with every client.
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates
"""

import base64
import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=30)  # a playground may run for weeks


def new_key() -> tuple[ec.EllipticCurvePrivateKey, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return key, pem


class Authority:
    def __init__(self) -> None:
        self._key, _ = new_key()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-control-plane")])
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        public = self._key.public_key()
        builder = self._builder(self._name, public).add_extension(x509.BasicConstraints(True, None), critical=True)
        builder = builder.add_extension(usage, critical=True)
        certificate = builder.sign(self._key, hashes.SHA256())
        self.pem = certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, user: str, groups: Sequence[str] = (), *, loopback: bool = False) -> tuple[bytes, bytes]:
        """A certificate and key in PEM for a client. With `loopback`, a server on this host can use them too."""
        key, key_pem = new_key()
        names = [x509.NameAttribute(NameOID.COMMON_NAME, user, _validate=False)]
        names += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = self._builder(x509.Name(names), key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        if loopback:
            hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), key_pem

    def write_kubeconfig(self, path: Path, *, server: str, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for `user` in `groups` to `path`, readable only by the file's owner."""
        certificate, key = self.issue(user, groups)
        config: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": _b64(self.pem)}}],
            "users": [
                {
                    "name": "test",
                    "user": {"client-certificate-data": _b64(certificate), "client-key-data": _b64(key)},
                }
            ],
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        return path

    def _builder(self, subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        issuer = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        )


def read_kubeconfig(path: Path) -> tuple[str, dict[str, bytes]]:
    """The server in a kubeconfig of this module, and its `ca`, `cert` and `key` as PEM."""
    config = yaml.safe_load(path.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    encoded = {
        "ca": cluster["certificate-authority-data"],
        "cert": user["client-certificate-data"],
        "key": user["client-key-data"],
    }
    return cluster["server"], {name: base64.b64decode(text) for name, text in encoded.items()}


def client_of(kubeconfig: Path) -> tuple[str, ssl.SSLContext]:
    """The server in a kubeconfig of this module, and a TLS context for its user."""
    server, pem = read_kubeconfig(kubeconfig)
    context = ssl.create_default_context(cadata=pem["ca"].decode())
    with NamedTemporaryFile() as pair:
        pair.write(pem["cert"] + pem["key"])
        pair.flush()
        context.load_cert_chain(pair.name)
    return server, context


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
