"""The hook for SSH keys fails closed. While the service is down, only Secrets with a job's keys are rejected."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.installation import service
from tests.support.installation.ssh_secrets import keys_of, suspended
from webhook.installation.registration import NAME

pytestmark = pytest.mark.timeout(300)

OWNER = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "x", "uid": "0f3a", "controller": True}
SSH: dict[str, Any] = {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": "eA=="}}
SECRETS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "opaque": ([], {"data": {"a": "eA=="}}),
    "immutable": ([], {"immutable": True, "data": {"a": "eA=="}}),
    "ssh-of-nobody": ([], SSH),
    "ssh-of-a-batch-job": ([{**OWNER, "apiVersion": "batch/v1", "kind": "Job"}], SSH),
    "x-ssh": ([{**OWNER, "controller": False}], SSH),
    "y-ssh": ([{key: value for key, value in OWNER.items() if key != "controller"} | {"name": "y"}], SSH),
    "another-name": ([OWNER], SSH),
    "z-ssh": ([{**OWNER, "apiVersion": "example.com/v1", "name": "z"}], SSH),
    "w-ssh": ([{**OWNER, "name": "w"}], {"data": {"a": "eA=="}}),
    "": ([OWNER], SSH),
    "many-owners": ([{**OWNER, "controller": False, "uid": f"u-{number}"} for number in range(5000)], SSH),
}


def secret(name: str, namespace: str, owners: list[dict[str, Any]], fields: dict[str, Any]) -> dict[str, Any]:
    """A Secret with generateName if `name` is empty. A finalizer prevents deletion by the garbage collector."""
    named = {"name": name} if name else {"generateName": "any-"}
    common = {"namespace": namespace, "labels": {"app": "x"}, "finalizers": ["example.com/keep"]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {**named, **common, "ownerReferences": owners}, **fields}


@pytest.fixture(scope="module")
def down(operator_cluster: Cluster) -> Iterator[Cluster]:
    """The state after a crash: the configurations are installed, but the service is down.

    The validating hooks are removed, because the test creates jobs.
    """
    with service.running(operator_cluster, name="crashed"):
        os.killpg(operator_cluster.programs["crashed"].pid, signal.SIGKILL)
        operator_cluster.kubectl("delete", "validatingwebhookconfigurations", NAME)
        yield operator_cluster
    with service.running(operator_cluster):
        pass  # a clean stop removes the configurations that the crash has left


@pytest.mark.parametrize("name", SECRETS)
def test_secret_without_keys_of_a_job_can_be_written_while_the_service_is_down(
    down: Cluster, namespace: str, name: str
) -> None:
    """The hook's match conditions exclude the creation, every update and the deletion of the Secret."""

    def kubectl(*args: str, **more: Any) -> Any:
        return down.kubectl(*args, "-n", namespace, **more)

    owners, fields = SECRETS[name]
    stored = json.loads(
        kubectl("create", "-o", "json", "-f", "-", stdin=secret(name, namespace, owners, fields)).stdout
    )
    name = stored["metadata"]["name"]
    kubectl("annotate", "secret", name, "a=b")
    if not fields.get("immutable"):
        for data in ({"more": "eA=="}, {"more": None}) if "data" in fields else ({"more": "eA=="}, None):
            kubectl("patch", "secret", name, "--type=merge", "-p", json.dumps({"data": data}))
    kubectl("delete", "secret", name, "--wait=false")
    kubectl("patch", "secret", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert down.get("secrets", "-n", namespace)["items"] == []


def test_secret_with_keys_of_a_job_needs_the_service(down: Cluster, namespace: str) -> None:
    """A Secret with the owner, type and name of a job's keys is rejected."""
    manifest = secret("x-ssh", namespace, [OWNER], SSH)
    refused = down.kubectl("create", "-f", "-", stdin=manifest, check=False)
    assert 'failed calling webhook "ssh-keys.mpijob.training.openshift.io"' in refused.stderr


@pytest.mark.parametrize("where", ["kube-system", "mpijob-webhook", "without the label"])
def test_secrets_excluded_by_namespace_or_label_do_not_need_the_service(
    down: Cluster, namespace: str, where: str
) -> None:
    """The Secret looks like the keys of a job."""
    place = namespace if where == "without the label" else where
    if where == "mpijob-webhook":
        down.kubectl("create", "namespace", where, check=False)  # the namespace may be left from a run with --register
    manifest = secret("x-ssh", place, [OWNER], SSH)
    if place == namespace:
        del manifest["metadata"]["labels"]
    down.kubectl("create", "--dry-run=server", "-f", "-", stdin=manifest)
    if where == "mpijob-webhook":
        down.kubectl("delete", "namespace", where, "--wait=false")


def test_operator_retries_until_the_service_is_up(down: Cluster, namespace: str) -> None:
    down.kubectl("create", "-f", "-", stdin=suspended(namespace, "train"))

    def refused() -> bool:
        log = down.programs["mpi-operator"].log.read_text()
        return any("ssh-keys.mpijob" in line and f"{namespace}/train" in line for line in log.splitlines())

    down.wait_for("the operator's request to be rejected", refused)
    assert down.get("secrets", "-n", namespace)["items"] == []
    with service.running(down):
        assert keys_of(down, namespace, ["train"])["train"].is_rsa_4096_pair()
