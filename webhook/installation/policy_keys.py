"""The Ed25519 keys with which policies are signed, in PEM as `openssl genpkey -algorithm ed25519` writes them."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from webhook.policy import signature
from webhook.policy.signature import Signature


class KeyFileError(Exception):
    """A file has no key that can be used; the message begins with its name."""


class PublicKeys:
    """Those of which one has to have signed: two of them while one takes the place of the other."""

    def __init__(self, keys: Iterable[Ed25519PublicKey]) -> None:
        self._keys = tuple(keys)

    def verify(self, message: bytes, signature: str) -> bool:
        """Whether one of them has signed `message`; the signature is in base64."""
        try:
            value = b64decode(signature, validate=True)
        except Base64Error:
            return False
        return any(_has_signed(key, message, value) for key in self._keys)


def public_keys(paths: Iterable[Path]) -> PublicKeys:
    """The public keys in files; KeyFileError for one that cannot be used."""
    found = []
    for path in paths:
        try:
            key = load_pem_public_key(_read(path))
        except (ValueError, UnsupportedAlgorithm):
            raise KeyFileError(f"{path} has no public key in PEM (`openssl pkey -in KEY -pubout`)") from None
        if not isinstance(key, Ed25519PublicKey):
            raise KeyFileError(f"{path} has a key of another kind than Ed25519")
        found.append(key)
    return PublicKeys(found)


def sign(path: Path, name: str, serial: int, text: str) -> Signature:
    """The signature of a policy by the private key in a file; KeyFileError where that cannot be used."""
    try:
        key = load_pem_private_key(_read(path), password=None)
    except TypeError:
        raise KeyFileError(f"{path} is encrypted; decrypt it into a pipe: --key <(openssl pkey -in {path})") from None
    except (ValueError, UnsupportedAlgorithm):
        raise KeyFileError(f"{path} has no private key in PEM (`openssl genpkey -algorithm ed25519`)") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(f"{path} has a key of another kind than Ed25519")
    return Signature(serial, b64encode(key.sign(signature.message(name, serial, text))).decode())


def _has_signed(key: Ed25519PublicKey, message: bytes, value: bytes) -> bool:
    try:
        key.verify(value, message)
    except InvalidSignature:
        return False
    return True


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KeyFileError(f"{path}: {error.strerror}") from None
