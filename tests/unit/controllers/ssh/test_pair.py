import subprocess
from typing import get_args

import pytest

from webhook.controllers.ssh import pool
from webhook.controllers.ssh.pool import GENERATORS, INSTANT, Algorithm, KeyPair
from webhook.policy.document import SshKeys

PAIRS = {algorithm: pool.generate(algorithm) for algorithm in GENERATORS}
NAMED = {"rsa-4096": "4096 RSA", "ecdsa-p521": "521 ECDSA", "ecdsa-p256": "256 ECDSA", "ed25519": "256 ED25519"}


def keygen(*args: str, **kwargs: object) -> str:
    return subprocess.run(
        ["ssh-keygen", *args], check=True, capture_output=True, text=True, timeout=30, **kwargs
    ).stdout.strip()


def test_policy_may_request_every_algorithm():
    assert set(get_args(SshKeys)) == {*get_args(Algorithm), "operator"}
    assert set(get_args(Algorithm)) == set(GENERATORS) == set(NAMED)
    assert set(GENERATORS) - INSTANT == {"rsa-4096"}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_openssh_reads_the_pair(pair: KeyPair, tmp_path):
    """OpenSSH's `ssh-keygen` reads both files and derives the same public key from the private key."""
    private, public = tmp_path / "id_rsa", tmp_path / "id_rsa.pub"
    private.write_bytes(pair.private)
    private.chmod(0o600)
    public.write_bytes(pair.authorized_key("mpijob/team-a/train"))
    size, kind = NAMED[pair.algorithm].split()
    listed = f"{size} {pair.fingerprint} mpijob/team-a/train ({kind})"
    assert keygen("-l", "-f", str(public)) == listed
    assert keygen("-y", "-P", "", "-f", str(private)).split()[:2] == pair.public.decode().split()


def test_format_of_the_private_key_is_readable_by_every_client():
    heads = {algorithm: pair.private.splitlines()[0].decode() for algorithm, pair in PAIRS.items()}
    assert heads == {
        "rsa-4096": "-----BEGIN RSA PRIVATE KEY-----",
        "ecdsa-p521": "-----BEGIN EC PRIVATE KEY-----",
        "ecdsa-p256": "-----BEGIN EC PRIVATE KEY-----",
        "ed25519": "-----BEGIN OPENSSH PRIVATE KEY-----",
    }


def test_repr_of_a_pair_has_no_key():
    pair = PAIRS["ed25519"]
    assert str(pair) == repr(pair)
    assert repr(pair).startswith("<webhook.controllers.ssh.pool.KeyPair object at ")
