"""Applies the same file again to a running and a queued job, with the real Kueue and operator."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import gpu_nodes
from tests.support.installation import service
from tests.support.paths import ROOT
from tests.support.policies import policy_configmap, quick_keys
from tests.support.queued_jobs import MANAGED, Job, add_queue, pi, settle, with_kueue
from webhook.api.annotations import INJECTED, RDMA

pytestmark = pytest.mark.timeout(600)
LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "bounds"},
    "spec": {"limits": [{"type": "Container", "min": {"cpu": "10m"}}]},
}
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "99"}}}
POLICY = """
injections:
  rdma: {resource: rdma/ib, perPod: 1, environment: {NCCL_IB_HCA: mlx5}}
  tolerations: {tolerations: [{key: team, operator: Exists}]}
  node-selector: {labels: {kubernetes.io/os: linux}}
  worker-readiness: {enabled: true}
"""
LATER = """
injections:
  rdma: {resource: rdma/ib, perPod: 2}
  tolerations: {tolerations: [{key: other, operator: Exists}]}
  job-timeout: {default: 1h}
  mpi-env: {enabled: false}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = gpu_nodes(4, devices={"rdma/ib": "4"})
    code = older(tmp_path_factory.mktemp("older"))
    with with_kueue(tmp_path_factory.mktemp("applied-again"), nodes, POLICY, code) as running:
        yield running


def older(folder: Path) -> Path:
    """Imitates an older version of the service, which injects a different value and lacks one of today's values."""
    package = Path(shutil.copytree(ROOT / "webhook", folder / "webhook"))
    for name, today, before in (
        ("mpi_env", "ConnectionAttempts=10", "ConnectionAttempts=5"),
        ("mpi_env", '"PRTE_MCA_prte_default_hostfile": HOSTFILE, ', ""),
    ):
        source = package / "injections" / f"{name}.py"
        text = source.read_text()
        assert today in text
        source.write_text(text.replace(today, before))
    return folder


def upgrade(cluster: Cluster, namespace: str) -> None:
    service.stop(cluster)
    service.start(cluster, *quick_keys(cluster.dir))


def forget_gpus(cluster: Cluster, namespace: str) -> None:
    for node in cluster.get("nodes")["items"]:
        cluster.kubectl("label", "node", node["metadata"]["name"], "nvidia.com/gpu.present-", "nvidia.com/gpu.product-")


def one_device_fewer(cluster: Cluster, namespace: str) -> None:
    patch = json.dumps({"status": {"allocatable": {"rdma/ib": "3"}, "capacity": {"rdma/ib": "3"}}})
    cluster.kubectl("patch", "node", "gpu-0", "--subresource=status", "--type=merge", "-p", patch)


CHANGES: dict[str, Callable[[Cluster, str], object]] = {
    "nothing": lambda cluster, namespace: None,
    "device": one_device_fewer,
    "limits": lambda cluster, namespace: cluster.kubectl("delete", "limitrange", "bounds", "-n", namespace),
    "quota": lambda cluster, namespace: cluster.kubectl("delete", "resourcequota", "q", "-n", namespace),
    "namespace": lambda cluster, namespace: cluster.kubectl(
        "label", "namespace", namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged"
    ),
    "policy": lambda cluster, namespace: cluster.kubectl("apply", "-f", "-", stdin=policy_configmap(LATER)),
    "GPU nodes": forget_gpus,
    "service": upgrade,
}


def gpu_job(namespace: str, name: str) -> dict[str, Any]:
    """A job with entries in every list that injections add to."""
    job = pi(namespace, name, annotations={RDMA: "true"})
    for role in ("Launcher", "Worker"):
        pod = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
        pod["tolerations"] = [{"key": "mine", "operator": "Exists"}]
        pod["volumes"] = [{"name": "scratch", "emptyDir": {}}]
        container = pod["containers"][0]
        container["env"] = [{"name": "MINE", "value": "1"}]
        container["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
        terms = [{"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "Exists"}]}]
        weights = [{"weight": 1, "preference": terms[0]}]
        near = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": weights,
        }
        pod["affinity"] = {"nodeAffinity": near}
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["resources"]["limits"]["nvidia.com/gpu"] = 1
    del job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["resources"]
    return job


def templates(job: Job) -> dict[str, Any]:
    specs = job.get()["spec"]["mpiReplicaSpecs"]
    return {role: specs[role]["template"] for role in specs}


def uids(job: Job) -> set[str]:
    return {pod["metadata"]["uid"] for pod in job.pods()}


def test_later_changes_of_policy_and_cluster_do_not_change_the_pods(cluster: Cluster) -> None:
    namespace = cluster.create_namespace("again", {**MANAGED, "pod-security.kubernetes.io/enforce": "baseline"})
    cluster.apply([{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in (LIMITS, QUOTA)])
    add_queue(cluster, namespace, cpu=20, devices={"nvidia.com/gpu": 2, "rdma/ib": 2})  # room for one of the jobs
    settle(cluster, namespace, "training")
    files = {name: gpu_job(namespace, name) for name in ("running", "queued")}
    jobs = {}
    for name, file in files.items():
        cluster.kubectl("apply", "-f", "-", stdin=file)
        jobs[name] = Job(cluster, namespace, name)
        if name == "running":
            jobs[name].wait_for("Running")
    before = {name: templates(job) for name, job in jobs.items()}
    listed = jobs["running"].get()["metadata"]["annotations"][INJECTED].split(",")
    assert {"gpu-nodes", "kueue-queue", "mpi-env", "rdma", "shared-memory", "tolerations", "topology"} <= {*listed}
    assert "ConnectionAttempts=5" in json.dumps(before["running"]), "written by the older version"
    pods = uids(jobs["running"])
    assert len(pods) == 3
    for change, apply in CHANGES.items():
        apply(cluster, namespace)
        for _ in range(2):
            for name, file in files.items():
                cluster.kubectl("apply", "-f", "-", stdin=file)
                assert templates(jobs[name]) == before[name], change
                assert jobs[name].queue == "training", change
                assert jobs[name].get()["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400, change
        assert (jobs["running"].suspended, jobs["queued"].suspended) == (False, True), change
    assert uids(jobs["running"]) == pods, "no pod may be restarted"
    workload = jobs["running"].workload()
    assert workload is not None
    assert has_condition(workload, "Admitted")
