"""Jobs in older versions on a real API server. The CRD calls the registered service for conversions."""

from copy import deepcopy
from typing import Any

from tests.controlplane.cluster import Cluster, has_condition
from tools import older_versions_crd
from webhook.installation.registration import NAME

Json = dict[str, Any]
CRD = "mpijobs.kubeflow.org"
OLDER = ("v1", "v1alpha2", "v1alpha1")
VERSIONS = ("v2beta1", *OLDER)
CONTAINER: Json = {"name": "mpi", "image": "registry.example.com/horovod:0.28.1"}
LIMITS = {"limits": {"cpu": "1", "memory": "1Gi"}}
LAUNCHER: Json = {
    **CONTAINER,
    "command": ["mpirun", "-np", "2", "-mca", "plm_rsh_agent", "/etc/mpi/kubexec.sh", "python", "train.py"],
    "resources": LIMITS,
}
WORKER: Json = {**CONTAINER, "command": ["sleep", "infinity"], "resources": LIMITS}


def horovod(namespace: str, name: str = "horovod", version: str = "v1", **spec: Any) -> Json:
    """A job for training-operator (v1)."""
    roles = {
        role: {"replicas": replicas, "template": {"spec": {"containers": [container]}}}
        for role, replicas, container in (("Launcher", 1, LAUNCHER), ("Worker", 2, WORKER))
    }
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": deepcopy({"slotsPerWorker": 1, "cleanPodPolicy": "Running", "mpiReplicaSpecs": roles, **spec}),
    }


def units(namespace: str, **spec: Any) -> Json:
    """A job in v1alpha1."""
    template = {"spec": {"containers": [{**LAUNCHER, "command": ["mpirun", "train"]}]}}
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": "units", "namespace": namespace},
        "spec": {"processingUnits": 4, "processingUnitsPerNode": 2, "processingResourceType": "cpu", **spec}
        | {"template": template},
    }


def resource(version: str) -> str:
    """kubectl's name for the resource in a version."""
    return f"mpijobs.{version}.kubeflow.org"


def read(cluster: Cluster, namespace: str, name: str, version: str) -> Json:
    """A stored job, read in this version."""
    job: Json = cluster.get(resource(version), name, "-n", namespace)
    assert job["apiVersion"] == f"kubeflow.org/{version}"
    return job


def container(job: Json, role: str = "Worker") -> Json:
    first: Json = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0]
    return first


def trusted(cluster: Cluster) -> Json:
    """The client configuration with which the API server calls the registered service for conversions."""
    hook = cluster.get("validatingwebhookconfigurations", NAME)["webhooks"][0]["clientConfig"]
    return {"url": hook["url"].rpartition("/")[0] + "/convert", "caBundle": hook["caBundle"]}


def serve_older_versions(cluster: Cluster) -> None:
    """Install the CRD with all versions."""
    crd = older_versions_crd.crd(trusted(cluster))
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=crd)
    cluster.wait_for("the CRD", lambda: has_condition(cluster.get("crd", CRD), "Established") or None)
    for version in VERSIONS:
        served = ("get", "--raw", f"/apis/kubeflow.org/{version}/mpijobs")
        cluster.wait_for(version, lambda served=served: cluster.kubectl(*served, check=False).returncode == 0 or None)
