"""Jobs whose workers need whole nodes, and their placement in a real cluster with hundreds of simulated nodes."""

from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import KEEP_RUNNING, gpu_nodes

GPU = "nvidia.com/gpu"
RACK = "topology.kubernetes.io/rack"
PER_RACK = 10
RACKS = 24
CPU_RACKS = 6


def nodes(racks: int = RACKS) -> list[dict[str, Any]]:
    """GPU nodes in racks of 10, and nodes without GPUs in 6 more racks. The default is 300 nodes in total."""
    plain = gpu_nodes(racks * PER_RACK // 4, gpus=0, racks=CPU_RACKS, prefix="cpu")
    for node in plain:
        node["metadata"]["labels"][RACK] += "-cpu"
    return [*gpu_nodes(racks * PER_RACK, racks=racks), *plain]


def job(name: str, workers: int, *, resource: str = GPU, **fields: Any) -> dict[str, Any]:
    """A job whose workers each request the eight devices of a node. `fields` are added to the job's spec.

    The pods run until they are deleted. The API server completes a name that ends in `-`.
    """
    container = {"name": "mpi", "image": "registry.example.com/mpi:1"}
    launcher = {"metadata": {"annotations": {KEEP_RUNNING: "yes"}}, "spec": {"containers": [container]}}
    worker = {"spec": {"containers": [container | {"resources": {"limits": {resource: 8}}}]}}
    roles = {"Launcher": {"template": launcher}, "Worker": {"replicas": workers, "template": worker}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"generateName" if name.endswith("-") else "name": name},
        "spec": {"runPolicy": {"cleanPodPolicy": "Running"}, "mpiReplicaSpecs": roles, **fields},
    }


def worker_pods(cluster: Cluster, namespace: str, name: str) -> list[dict[str, Any]]:
    selector = f"--selector=training.kubeflow.org/job-name={name},training.kubeflow.org/job-role=worker"
    pods: list[dict[str, Any]] = cluster.get("pods", "-n", namespace, selector)["items"]
    return pods


def hosts(cluster: Cluster, namespace: str, name: str, workers: int) -> list[str]:
    """Wait until `workers` workers of the job have a node. Returns these nodes."""

    def bound() -> list[str] | None:
        pods = worker_pods(cluster, namespace, name)
        nodes = [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]
        return nodes if len(nodes) == workers else None

    return cluster.wait_for(f"{workers} workers of {name} to be bound", bound, timeout=120)


def delete_jobs(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("delete", "mpijobs", "--all", "-n", namespace)
    gone = lambda: not cluster.get("pods", "-n", namespace)["items"] or None  # noqa: E731
    cluster.wait_for("the pods to be gone", gone, timeout=120)
