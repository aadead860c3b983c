"""Injected values when a job on the real API server is applied again, replaced or edited."""

import copy
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation.service import example
from webhook.api.annotations import INJECTED, SKIP

pytestmark = [pytest.mark.usefixtures("webhook"), pytest.mark.timeout(300)]
PI = assets().upstream_examples["pi"]
WAYS = {"client": ["apply"], "server": ["apply", "--server-side"]}


@pytest.fixture
def job(namespace: str) -> dict[str, Any]:
    return example(PI, namespace=namespace, name="again")


def stored(cluster: Cluster, namespace: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("mpijob", "again", "-n", namespace)
    return found


def replace(cluster: Cluster, job: dict[str, Any]) -> str:
    """kubectl's warnings. Retries if the operator changed the job between kubectl's read and its write."""
    while (done := cluster.kubectl("replace", "-f", "-", stdin=job, check=False)).returncode:
        assert "(Conflict)" in done.stderr
    return done.stderr


@pytest.mark.parametrize("way", list(WAYS))
def test_repeated_submission_of_the_same_file_changes_nothing(
    cluster: Cluster, namespace: str, job: dict[str, Any], way: str
) -> None:
    first = cluster.kubectl(*WAYS[way], "-f", "-", stdin=job)
    assert "Warning: injected: job-timeout 24h, " in first.stderr
    before = stored(cluster, namespace)
    assert "mpi-env" in before["metadata"]["annotations"][INJECTED]
    for _ in range(9):
        assert cluster.kubectl(*WAYS[way], "-f", "-", stdin=job).stderr == ""
    after = stored(cluster, namespace)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"]


def test_replace_with_the_same_file_changes_nothing(cluster: Cluster, namespace: str, job: dict[str, Any]) -> None:
    cluster.kubectl("create", "-f", "-", stdin=job)
    before = stored(cluster, namespace)
    replace(cluster, job)
    after = stored(cluster, namespace)
    del before["metadata"]["annotations"][INJECTED]
    assert (after["spec"], after["metadata"]["annotations"]) == (before["spec"], before["metadata"]["annotations"])

    without = copy.deepcopy(job)
    without["metadata"]["annotations"] = {SKIP: "istio"}
    replace(cluster, without)
    assert "sidecar.istio.io/inject" not in stored(cluster, namespace)["metadata"]["annotations"]


def test_replace_with_different_requests_changes_the_injected_values(
    cluster: Cluster, namespace: str, job: dict[str, Any]
) -> None:
    def annotate(**annotations: str) -> str:
        new = copy.deepcopy(job)
        new["metadata"]["annotations"] = {f"training.openshift.io/{key}": value for key, value in annotations.items()}
        return replace(cluster, new)

    job["spec"]["runPolicy"].pop("cleanPodPolicy")
    cluster.kubectl("create", "-f", "-", stdin=job)
    first = stored(cluster, namespace)
    assert first["spec"]["runPolicy"]["activeDeadlineSeconds"] == 24 * 3600
    assert "Warning: injected: job-timeout 72h" in annotate(timeout="72h")
    assert stored(cluster, namespace)["spec"]["runPolicy"]["activeDeadlineSeconds"] == 72 * 3600
    assert annotate(timeout="72h") == ""
    assert "Warning: injected: clean-pod-policy" in annotate(**{"timeout": "72h", "debug-mode": "true"})
    policy = stored(cluster, namespace)["spec"]["runPolicy"]
    assert (policy["activeDeadlineSeconds"], policy["cleanPodPolicy"]) == (72 * 3600, "None")
    annotate(**{"timeout-action": "notify-only"})
    assert stored(cluster, namespace)["spec"]["runPolicy"]["activeDeadlineSeconds"] == 7 * 24 * 3600


def test_replace_with_an_affinity_removes_the_injected_affinity(
    cluster: Cluster, namespace: str, job: dict[str, Any]
) -> None:
    anti = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "noisy"}}}
        ]
    }
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    cluster.kubectl("create", "-f", "-", stdin=job)
    worker["spec"]["affinity"] = {"podAntiAffinity": anti}
    assert replace(cluster, job) == ""
    after = stored(cluster, namespace)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"]
    assert after == {"podAntiAffinity": anti}
