"""The Secret with a job's SSH keys, as the operator creates it, and reviews of the Secret."""

import copy
import json
from base64 import b64decode, b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from tests.support import jobs
from webhook.api import review

REMOVE = jobs.REMOVE

OPERATORS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "train-ssh",
        "namespace": "team-a",
        "labels": {"app": "train"},
        "ownerReferences": [
            {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "name": "train",
                "uid": "0f3a",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    },
    "type": "kubernetes.io/ssh-auth",
    "data": {
        "ssh-privatekey": b64encode(b"-----BEGIN EC PRIVATE KEY-----\n...").decode(),
        "ssh-publickey": b64encode(b"ecdsa-sha2-nistp521 AAAA\n").decode(),
    },
}


def secret(**changes: Any) -> dict[str, Any]:
    """The operator's Secret with changed values at dotted paths (`__` stands for a dot)."""
    return jobs.changed({path.replace("__", "."): value for path, value in changes.items()}, OPERATORS)


def body(new: Any, **fields: Any) -> bytes:
    """The bytes of the AdmissionReview for a Secret."""
    return jobs.body(new, **{"kind": {"group": "", "version": "v1", "kind": "Secret"}, **fields})


def request(new: Any, **fields: Any) -> review.AdmissionRequest:
    return review.decode(body(new, **fields))


def patched(stored: dict[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any]:
    """`stored` with the patch applied. The patch sets only `data`."""
    result = copy.deepcopy(stored)
    for operation in patch:
        assert (operation["op"], operation["path"]) == ("add", "/data")
        result["data"] = operation["value"]
    return result


def patch_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = json.loads(b64decode(answer["patch"]))
    return operations


def keys_of(stored: dict[str, Any]) -> tuple[bytes, bytes]:
    """(private key, public key) as in the mounted files."""
    assert set(stored["data"]) == {"ssh-privatekey", "ssh-publickey"}
    return b64decode(stored["data"]["ssh-privatekey"]), b64decode(stored["data"]["ssh-publickey"])


def is_pair(private: bytes, public: bytes, algorithm: str) -> bool:
    """Whether `private` is a key of `algorithm`, and `public` starts with the public key of `private`."""
    load = load_ssh_private_key if b"BEGIN OPENSSH" in private else load_pem_private_key
    key = load(private, None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey)
    kind = {rsa.RSAPrivateKey: "rsa-", ec.EllipticCurvePrivateKey: "ecdsa-p"}
    name = next((f"{name}{key.key_size}" for of, name in kind.items() if isinstance(key, of)), "ed25519")
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return name == algorithm and public.split()[:2] == line.split()
