import subprocess
from typing import get_args

import pytest

from webhook.companions.ssh import pair as ssh_pair
from webhook.companions.ssh.pair import GENERATORS, INSTANT, Algorithm, KeyPair
from webhook.policy.document import SshKeys

PAIRS = {algorithm: ssh_pair.generate(algorithm) for algorithm in GENERATORS}
NAMED = {"rsa-4096": "4096 RSA", "ecdsa-p521": "521 ECDSA", "ecdsa-p256": "256 ECDSA", "ed25519": "256 ED25519"}


def keygen(*args: str, **kwargs: object) -> str:
    return subprocess.run(
        ["ssh-keygen", *args], check=True, capture_output=True, text=True, timeout=30, **kwargs
    ).stdout.strip()


def test_a_policy_may_ask_for_every_algorithm():
    assert set(get_args(SshKeys)) == {*get_args(Algorithm), "operator"}
    assert set(get_args(Algorithm)) == set(GENERATORS) == set(NAMED)
    assert set(GENERATORS) - INSTANT == {"rsa-4096"}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_openssh_reads_it(pair: KeyPair, tmp_path):
    """Both files as OpenSSH's own tool sees them; what it derives from the private key is our public key."""
    private, public = tmp_path / "id_rsa", tmp_path / "id_rsa.pub"
    private.write_bytes(pair.private)
    private.chmod(0o600)
    public.write_bytes(pair.authorized_key("mpijob/team-a/train"))
    size, kind = NAMED[pair.algorithm].split()
    listed = f"{size} {pair.fingerprint} mpijob/team-a/train ({kind})"
    assert keygen("-l", "-f", str(public)) == listed
    assert keygen("-y", "-P", "", "-f", str(private)).split()[:2] == pair.public.decode().split()


def test_the_private_key_is_in_the_format_that_every_client_reads():
    heads = {algorithm: pair.private.splitlines()[0].decode() for algorithm, pair in PAIRS.items()}
    assert heads == {
        "rsa-4096": "-----BEGIN RSA PRIVATE KEY-----",
        "ecdsa-p521": "-----BEGIN EC PRIVATE KEY-----",
        "ecdsa-p256": "-----BEGIN EC PRIVATE KEY-----",
        "ed25519": "-----BEGIN OPENSSH PRIVATE KEY-----",
    }


@pytest.mark.parametrize("algorithm", PAIRS)
def test_it_belongs_to_itself_alone(algorithm: Algorithm):
    pair = PAIRS[algorithm]
    assert ssh_pair.belongs(pair.private, pair.public, algorithm)
    assert ssh_pair.belongs(pair.private, pair.authorized_key("any"), algorithm)
    for other in GENERATORS:
        if other != algorithm:
            assert not ssh_pair.belongs(pair.private, pair.public, other)
            assert not ssh_pair.belongs(pair.private, PAIRS[other].public, algorithm)
    if algorithm in INSTANT:
        assert not ssh_pair.belongs(pair.private, ssh_pair.generate(algorithm).public, algorithm)


@pytest.mark.parametrize(
    "private",
    [
        b"",
        b"hello",
        b"\xff\x00" * 50,
        b"-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----\n",
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA==\n-----END OPENSSH PRIVATE KEY-----\n",
        PAIRS["rsa-4096"].private[:-200],
        PAIRS["rsa-4096"].private.replace(b"\n", b""),
        PAIRS["rsa-4096"].private + b" " * 10_000,
        PAIRS["rsa-4096"].public,
    ],
)
def test_what_is_no_key_belongs_to_nothing(private):
    assert not ssh_pair.belongs(private, PAIRS["rsa-4096"].public, "rsa-4096")


def test_other_kinds_and_sizes_are_not_ours(tmp_path):
    for kind, bits in (("rsa", "2048"), ("ecdsa", "384")):
        path = tmp_path / kind
        keygen("-q", "-t", kind, "-b", bits, "-N", "", "-m", "PEM", "-f", str(path))
        for algorithm in GENERATORS:
            assert not ssh_pair.belongs(path.read_bytes(), path.with_suffix(".pub").read_bytes(), algorithm)


def test_a_key_with_a_password_is_not_ours(tmp_path):
    path = tmp_path / "key"
    keygen("-q", "-t", "ed25519", "-N", "secret", "-f", str(path))
    assert not ssh_pair.belongs(path.read_bytes(), path.with_suffix(".pub").read_bytes(), "ed25519")


def test_a_pair_is_never_printed():
    pair = PAIRS["ed25519"]
    assert str(pair) == repr(pair)
    assert repr(pair).startswith("<webhook.companions.ssh.pair.KeyPair object at ")
