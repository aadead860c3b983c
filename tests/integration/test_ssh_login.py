"""The pair of a stored Secret, mounted as the operator's pods mount it, lets its own job in and no other."""

import os
from pathlib import Path
from typing import Any

import pytest

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
    """The volume of the launcher's pods with the SSH keys."""
    launcher = cluster.wait_for("the launcher", lambda: cluster.get("job", f"{job}-launcher", "-n", namespace))
    (volume,) = (one for one in launcher["spec"]["template"]["spec"]["volumes"] if one["name"] == "ssh-auth")
    assert volume["secret"]["secretName"] == f"{job}-ssh"
    return volume


@pytest.mark.parametrize("algorithm", ["rsa-4096", "ecdsa-p521", "ecdsa-p256", "ed25519"])
def test_a_job_can_log_in_to_its_workers_and_no_other_can(
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
