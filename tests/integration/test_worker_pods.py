"""The effects of the injections worker-readiness and host-network with the real operator and scheduler."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import KEEP_RUNNING, gpu_nodes
from tests.support.installation.service import example, running

pytestmark = pytest.mark.timeout(300)
PI = assets().upstream_examples["pi"]
POLICY = """
apiVersion: policy.training.openshift.io/v1
kind: MPIJobPolicy
injections:
  host-network: {enabled: true}
  worker-readiness: {enabled: true}
"""
POOL = "ports"


@pytest.fixture(scope="module")
def cluster_with_policy(operator_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The registered service, and two separate nodes."""
    nodes = gpu_nodes(2, prefix=POOL)
    for node in nodes:
        node["metadata"]["labels"]["pool"] = POOL
    operator_cluster.apply(nodes)
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    with running(operator_cluster, "--policy", str(policy)):
        yield operator_cluster
    operator_cluster.kubectl("delete", "node", "--wait=false", *(node["metadata"]["name"] for node in nodes))


def pods(cluster: Cluster, namespace: str, role: str) -> list[dict[str, Any]]:
    found = cluster.get("pods", "-n", namespace, "-l", f"training.kubeflow.org/job-role={role}")
    items: list[dict[str, Any]] = found["items"]
    return items


def ready_at(pod: dict[str, Any]) -> datetime | None:
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] == "True":
            return datetime.fromisoformat(condition["lastTransitionTime"])
    return None


def test_launcher_is_created_when_the_workers_are_ready(cluster_with_policy: Cluster, namespace: str) -> None:
    cluster = cluster_with_policy
    job = example(PI, name="waits", namespace=namespace)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 2222}]
    warnings = cluster.kubectl("create", "-f", "-", stdin=job).stderr
    assert "worker-readiness" in warnings
    stored = cluster.get("mpijob", "waits", "-n", namespace)["spec"]
    assert stored["launcherCreationPolicy"] == "WaitForWorkersReady"
    (launcher,) = cluster.wait_for("the launcher", lambda: pods(cluster, namespace, "launcher") or None)
    workers = pods(cluster, namespace, "worker")
    assert len(workers) == 2
    for worker in workers:
        probe = worker["spec"]["containers"][0]["readinessProbe"]
        assert (probe["tcpSocket"]["port"], probe["periodSeconds"]) == (2222, 5)
        ready = ready_at(worker)
        assert ready is not None
        assert ready <= datetime.fromisoformat(launcher["metadata"]["creationTimestamp"])


def test_workers_in_the_host_network_do_not_share_a_node(cluster_with_policy: Cluster, namespace: str) -> None:
    cluster = cluster_with_policy
    job = example(PI, name="ports", namespace=namespace)
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    worker["replicas"] = 3
    worker["template"]["spec"] |= {"hostNetwork": True, "nodeSelector": {"pool": POOL}}
    worker["template"]["spec"]["containers"][0]["args"] = ["-De", "-p", "2222"]
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    launcher["metadata"] = {"annotations": {KEEP_RUNNING: "yes"}}
    warnings = cluster.kubectl("create", "-f", "-", stdin=job).stderr
    assert "injected: " in warnings
    assert "host-network" in warnings

    def refused() -> dict[str, Any] | None:
        for pod in pods(cluster, namespace, "worker"):
            for condition in pod.get("status", {}).get("conditions", ()):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    found: dict[str, Any] = condition
                    return found
        return None

    condition = cluster.wait_for("the third worker to wait", refused)
    assert "didn't have free ports for the requested pod ports" in condition["message"]
    workers = pods(cluster, namespace, "worker")
    nodes = [pod["spec"]["nodeName"] for pod in workers if pod["spec"].get("nodeName")]
    assert len(nodes) == len(set(nodes)) == 2
    assert {pod["spec"]["containers"][0]["ports"][0]["hostPort"] for pod in workers} == {2222}
