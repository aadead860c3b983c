"""The Secrets that the operator creates for jobs, and the SSH keys in them."""

from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_public_key,
)

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import wait_for
from tests.support.installation.service import example

PI = assets().upstream_examples["pi"]


@dataclass(frozen=True)
class Stored:
    """A stored Secret: its job, its files, and the words of the line in authorized_keys."""

    job: str
    owner_uid: str
    private: bytes
    public: bytes
    manifest: dict[str, Any]

    @property
    def words(self) -> list[str]:
        return self.public.decode().split()

    def is_rsa_4096_pair(self) -> bool:
        """Whether the keys are an RSA-4096 pair. The check for primes is left out: it takes a quarter of a second."""
        private = load_pem_private_key(self.private, None, unsafe_skip_rsa_key_validation=True)
        public = load_ssh_public_key(self.public)
        assert isinstance(private, rsa.RSAPrivateKey)
        numbers = private.private_numbers()
        return (
            private.key_size == 4096
            and numbers.p * numbers.q == numbers.public_numbers.n
            and private.public_key() == public
            and public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).split() == self.public.split()[:2]
        )


def suspended(namespace: str, name: str) -> dict[str, Any]:
    """A suspended job, for which the operator creates the Secret but no pods."""
    job = example(PI, namespace=namespace, name=name)
    job["spec"]["runPolicy"] = {**job["spec"].get("runPolicy", {}), "suspend": True}
    return job


def stored(secret: dict[str, Any]) -> Stored:
    """The Secret of a job. Raises AssertionError for other Secrets."""
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("MPIJob", True)
    assert secret["metadata"]["name"] == f"{owner['name']}-ssh"
    assert secret["type"] == "kubernetes.io/ssh-auth"
    assert set(secret["data"]) == {"ssh-privatekey", "ssh-publickey"}
    private, public = (b64decode(secret["data"][key]) for key in ("ssh-privatekey", "ssh-publickey"))
    return Stored(owner["name"], owner["uid"], private, public, secret)


def keys_of(cluster: Cluster, namespace: str, names: Iterable[str], *, timeout: float = 60) -> dict[str, Stored]:
    """The Secrets of these jobs, once all exist."""
    expected = {f"secret/{name}-ssh" for name in names}

    def all_there() -> bool:
        return expected <= set(cluster.kubectl("get", "secrets", "-n", namespace, "-o", "name").stdout.split())

    wait_for("the SSH keys", all_there, timeout=timeout, every=0.5)
    return {secret.job: secret for secret in map(stored, cluster.get("secrets", "-n", namespace)["items"])}
