"""An SSH key pair in the formats that OpenSSH reads, from `cryptography` (OpenSSL).

A pair is never printed: its `repr` has no key, and no error here quotes one.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

Algorithm = Literal["rsa-4096", "ecdsa-p521", "ecdsa-p256", "ed25519"]
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

GENERATORS: Final[Mapping[Algorithm, Callable[[], PrivateKey]]] = {
    "rsa-4096": lambda: rsa.generate_private_key(public_exponent=65537, key_size=4096),
    "ecdsa-p521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ecdsa-p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}
# An RSA-4096 key takes half a second of a core, each of these less than half a millisecond.
INSTANT: Final[frozenset[Algorithm]] = frozenset({"ecdsa-p521", "ecdsa-p256", "ed25519"})


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class KeyPair:
    """A private key and the public key that belongs to it."""

    algorithm: Algorithm
    private: bytes
    """In PEM, as ssh reads it from `id_rsa`."""
    public: bytes
    """The first two words of a line of authorized_keys."""

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        return fingerprint(self.public)

    def authorized_key(self, comment: str) -> bytes:
        """The line of authorized_keys, with its line break."""
        return self.public + b" " + comment.encode() + b"\n"


def generate(algorithm: Algorithm) -> KeyPair:
    """A new pair."""
    key = GENERATORS[algorithm]()
    return KeyPair(algorithm, _private(key), _public(key))


def fingerprint(public: bytes) -> str:
    """The fingerprint of the key in a line of authorized_keys."""
    digest = hashlib.sha256(b64decode(public.split()[1])).digest()
    return "SHA256:" + b64encode(digest).decode().rstrip("=")


def _private(key: PrivateKey) -> bytes:
    # Ed25519 has no older format. Of the others, every version of OpenSSH and other clients read the older one.
    is_new = isinstance(key, ed25519.Ed25519PrivateKey)
    style = PrivateFormat.OpenSSH if is_new else PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(Encoding.PEM, style, NoEncryption())


def _public(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
