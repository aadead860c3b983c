"""Each job's Secret, made by the real operator, gets a key pair of the service."""

from base64 import b64encode
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.ssh_secrets import keys_of, suspended
from webhook.companions.ssh.pair import fingerprint

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("webhook")]


def create(cluster: Cluster, *manifests: dict[str, Any]) -> None:
    cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": list(manifests)})


def reviews(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    """The decisions on Secrets in a namespace."""
    found = [line for line in service.decisions(cluster) if line["webhook"] == "ssh-keys"]
    return [line for line in found if line["namespace"] == namespace]


def test_every_job_has_a_pair_of_its_own(operator_cluster: Cluster, namespace: str) -> None:
    names = [f"job-{number}" for number in range(4)]
    create(operator_cluster, *(suspended(namespace, name) for name in names))
    keys = keys_of(operator_cluster, namespace, names)
    jobs = {
        job["metadata"]["name"]: job["metadata"] for job in operator_cluster.get("mpijobs", "-n", namespace)["items"]
    }
    for name in names:
        assert keys[name].is_rsa_4096_pair()
        assert keys[name].words[2:] == [f"mpijob/{namespace}/{name}"]
        assert keys[name].owner_uid == jobs[name]["uid"]
    assert len({stored.private for stored in keys.values()}) == len({stored.public for stored in keys.values()}) == 4
    assert {line["name"] for line in reviews(operator_cluster, namespace)} == {f"{name}-ssh" for name in names}


def test_changes_of_a_jobs_secret(operator_cluster: Cluster, namespace: str) -> None:
    def kubectl(*args: str) -> Any:
        return operator_cluster.kubectl(*args, "-n", namespace)

    create(operator_cluster, suspended(namespace, "train"))
    first = keys_of(operator_cluster, namespace, ["train"])["train"]

    # A label is nobody's business; nor is the same data again.
    kubectl("label", "secret", "train-ssh", "team=a")
    operator_cluster.kubectl(
        "replace",
        "-f",
        "-",
        stdin={
            **first.manifest,
            "metadata": {key: value for key, value in first.manifest["metadata"].items() if key != "resourceVersion"},
        },
    )
    assert keys_of(operator_cluster, namespace, ["train"])["train"].private == first.private
    assert len(reviews(operator_cluster, namespace)) == 1

    # Other data becomes another pair of ours, and whoever writes it is told.
    other = b64encode(b"mine").decode()
    patch = f'{{"data":{{"ssh-privatekey":"{other}","ssh-publickey":"{other}"}}}}'
    written = kubectl("patch", "secret", "train-ssh", "--type=merge", "-p", patch)
    assert "Warning: ssh-keys: a new rsa-4096 key pair replaced the one written" in written.stderr
    second = keys_of(operator_cluster, namespace, ["train"])["train"]
    assert second.is_rsa_4096_pair()
    assert second.private != first.private

    # A key too many: the operator would write all of it anew, and gets a pair of ours.
    kubectl("patch", "secret", "train-ssh", "--type=merge", "-p", f'{{"data":{{"more":"{other}"}}}}')
    third = keys_of(operator_cluster, namespace, ["train"])["train"]
    assert third.is_rsa_4096_pair()
    assert len({fingerprint(stored.public) for stored in (first, second, third)}) == 3

    # A dry run takes no RSA key.
    dry = kubectl("patch", "secret", "train-ssh", "--type=merge", "-p", patch, "--dry-run=server", "-o", "yaml")
    assert b64encode(b"ecdsa-sha2-nistp521 ").decode()[:20] in dry.stdout
    assert keys_of(operator_cluster, namespace, ["train"])["train"].private == third.private
