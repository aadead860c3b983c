"""Key pairs for signing policies, and policies signed with them."""

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from webhook.installation import policy_keys


def key_pair(folder: Path, name: str = "policy") -> tuple[Path, Path]:
    """(private, public) in files, as openssl writes them."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    plain = serialization.NoEncryption()
    pkcs8, pem = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    private.write_bytes(key.private_bytes(pem, pkcs8, plain))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def signed(private: Path, name: str, serial: int, text: str) -> str:
    """What stands in the annotation."""
    return str(policy_keys.sign(private, name, serial, text))
