"""The key pair of a job's Secret, mounted as in the operator's pods, allows logins only within that job."""

import os
import pwd
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.ssh_secrets import keys_of
from tests.support.installation.sshd import Sshd, find_sshd, login, mounted, serving
from tests.support.jobs import changed

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the keys are mounted at /root/.ssh"),
]
POLICY = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\nsshKeys: {}\n"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Sshd:
    return find_sshd(tmp_path_factory.mktemp("sshd"))


def volume_of(cluster: Cluster, namespace: str, job: str) -> Any:
    """The volume with the SSH keys in the launcher's pods."""
    launcher = cluster.wait_for("the launcher", lambda: cluster.get("job", f"{job}-launcher", "-n", namespace))
    (volume,) = (one for one in launcher["spec"]["template"]["spec"]["volumes"] if one["name"] == "ssh-auth")
    assert volume["secret"]["secretName"] == f"{job}-ssh"
    return volume


@pytest.mark.parametrize("algorithm", ["rsa-4096", "ed25519"])
def test_only_the_launcher_of_the_job_can_log_in_to_its_workers(
    operator_cluster: Cluster, namespace: str, sshd: Sshd, tmp_path: Path, algorithm: str
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.format(algorithm))
    with service.running(operator_cluster, "--policy", str(policy)):
        jobs = [
            changed({"metadata.namespace": namespace, "metadata.name": name, "spec.runPolicy.suspend": True})
            for name in ("first", "second")
        ]
        operator_cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": jobs})
        keys = keys_of(operator_cluster, namespace, ["first", "second"])
        first, second = (
            mounted(volume_of(operator_cluster, namespace, name), keys[name].manifest, tmp_path / name)
            for name in ("first", "second")
        )
    assert {path.name: path.stat().st_mode & 0o777 for path in first.iterdir() if path.is_file()} == dict.fromkeys(
        ("id_rsa", "id_rsa.pub", "authorized_keys"), 0o600
    )
    with serving(sshd, first) as port:
        own = login(first, port)
        assert (own.returncode, own.stdout) == (0, "logged in\n"), own.stderr
        other = login(second, port)
        assert (other.returncode, other.stdout) == (255, "")
        assert "root@127.0.0.1: Permission denied (publickey)." in other.stderr


@pytest.mark.parametrize(("shell", "lets_in"), [("/bin/bash", True), ("/nonexistent/sh", False), ("", True)])
def test_sshd_rejects_a_user_whose_shell_is_missing(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str, lets_in: bool
) -> None:
    """If sshd accepts a login, the image has a shell. The injection `launcher-wait` relies on this shell."""
    root = pwd.struct_passwd(("root", "x", 0, 0, "root", "/root", shell))
    monkeypatch.setattr(pwd, "getpwall", lambda: [root])
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    secret = {"data": {"private": b64encode(private).decode(), "public": b64encode(public).decode()}}
    files = {"private": ("id_rsa",), "public": ("id_rsa.pub", "authorized_keys")}
    items = [{"key": name, "path": path} for name, paths in files.items() for path in paths]
    folder = mounted({"secret": {"items": items, "defaultMode": 0o600}}, secret, tmp_path / "keys")
    with serving(sshd, folder) as port:
        done = login(folder, port)
        log = folder.with_name("keys-log").read_text()
    assert (done.returncode == 0) == lets_in
    assert ("not allowed because shell /nonexistent/sh does not exist" in log) == (not lets_in)
