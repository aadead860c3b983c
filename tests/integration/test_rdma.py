"""Pods that the operator creates get RDMA devices and networks, and run on nodes with these devices."""

from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import gpu_nodes
from tests.support.installation.inventory import networks_definition
from tests.support.installation.service import Replica, review_of, running
from tests.support.jobs import changed
from tests.support.networks import network
from webhook.api.annotations import RDMA
from webhook.api.networks import NETWORKS

pytestmark = pytest.mark.timeout(300)
VF = "openshift.io/mlx_vf"
HOSTDEV = "nvidia.com/hostdev"
GPU = "nvidia.com/gpu"
POLICY = """
apiVersion: policy.training.openshift.io/v1
kind: MPIJobPolicy
injections:
  networks: {networks: [rail-0@rail0]}
  rdma: {environment: {OMPI_MCA_pml: ucx}}
"""
ADAPTERS = "adapters"


@pytest.fixture(scope="module")
def replica(operator_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The registered service. The cluster has the CRD of Multus networks, and nodes with adapters and GPUs."""
    definition = networks_definition()
    operator_cluster.apply([definition])
    operator_cluster.kubectl("wait", "--for=condition=Established", f"crd/{definition['metadata']['name']}")
    nodes = gpu_nodes(2, prefix=ADAPTERS)
    for node in nodes:
        node["metadata"]["labels"]["pool"] = ADAPTERS
        for amounts in ("capacity", "allocatable"):
            node["status"][amounts] = {**node["status"][amounts], VF: "8", HOSTDEV: "8"}
    operator_cluster.apply(nodes)
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    with running(operator_cluster, "--policy", str(policy)) as started:
        yield started
    operator_cluster.kubectl("delete", "node", "--wait=false", *(node["metadata"]["name"] for node in nodes))


def rdma_job(namespace: str, **changes: Any) -> dict[str, Any]:
    return changed(
        {
            "metadata.namespace": namespace,
            "metadata.annotations": {RDMA: "true"},
            "Worker.replicas": 2,
            "Worker.template.metadata": {"annotations": {NETWORKS: "own"}},
            "Worker.template.spec.nodeSelector": {"pool": ADAPTERS},
            "Worker.template.spec.containers.0.resources": {"limits": {"cpu": "4", "memory": "8Gi", GPU: 4}},
            **changes,
        }
    )


def workers(cluster: Cluster, namespace: str) -> list[dict[str, Any]] | None:
    """The workers' pods, once both pods have a node."""
    pods = cluster.get("pods", "-n", namespace, "-l", "training.kubeflow.org/job-role=worker")["items"]
    return pods if len(pods) == 2 and all(pod["spec"].get("nodeName") for pod in pods) else None


@pytest.mark.parametrize(("resource", "expected"), [("", {HOSTDEV: "4"}), (VF, {VF: "2"})])
def test_pods_have_devices_and_networks(
    operator_cluster: Cluster, replica: Replica, namespace: str, resource: str, expected: dict[str, str]
) -> None:
    """If the networks name a device resource, each pod gets one device per network.

    Otherwise each pod gets a share of a node's devices.
    """
    networks = [network(name, resource, namespace=namespace) for name in ("own", "rail-0")]
    operator_cluster.apply([{**each, "spec": {}} for each in networks])
    job = rdma_job(namespace)
    given = next(iter(expected))
    operator_cluster.wait_for(
        "the service to see nodes and networks",
        lambda: given in str(review_of(replica, job, "mutate-mpijob").get("auditAnnotations", {})) or None,
    )
    for _ in range(2):
        operator_cluster.kubectl("apply", "--server-side", "-f", "-", stdin=job)
        stored = operator_cluster.get("mpijob", job["metadata"]["name"], "-n", namespace)
        template = stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
        assert template["metadata"]["annotations"][NETWORKS] == "own, rail-0@rail0"
    for pod in operator_cluster.wait_for("the workers on nodes", lambda: workers(operator_cluster, namespace)):
        assert pod["metadata"]["annotations"][NETWORKS] == "own, rail-0@rail0"
        resources = pod["spec"]["containers"][0]["resources"]
        asked = {name: amount for name, amount in resources["limits"].items() if "/" in name and name != GPU}
        assert asked == expected
        assert resources["requests"].items() >= expected.items()
        assert pod["spec"]["nodeName"].startswith(ADAPTERS)
