"""The Secret that the real operator creates for a job gets a key pair from the service."""

from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.ssh_secrets import keys_of, suspended

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("webhook")]


def create(cluster: Cluster, *manifests: dict[str, Any]) -> None:
    cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": list(manifests)})


def reviews(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    """The logged decisions about Secrets in a namespace."""
    found = [line for line in service.decisions(cluster) if line["webhook"] == "ssh-keys"]
    return [line for line in found if line["namespace"] == namespace]


def test_each_job_has_a_different_key_pair(operator_cluster: Cluster, namespace: str) -> None:
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
