"""The content of a job cannot disable its review, and cannot make the service restore forged values."""

import json
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.support.installation.service import example
from webhook.api.annotations import INJECTED

pytestmark = [pytest.mark.usefixtures("webhook"), pytest.mark.timeout(300)]
PI = assets().upstream_examples["pi"]
WRITTEN = {"null": None, "date": "2026-01-01T00:00:00Z", "empty": ""}
SERVER_SIDE = ("apply", "--server-side", "--field-manager=tenant", "--force-conflicts", "--validate=false")
WAYS = {"create": ("create", "--validate=false"), "apply": ("apply", "--validate=false"), "server-side": SERVER_SIDE}


def pi(namespace: str, name: str, **metadata: Any) -> dict[str, Any]:
    job = example(PI, namespace=namespace, name=name)
    job["metadata"] |= metadata
    return job


def launcher(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["mpiReplicaSpecs"]["Launcher"]
    return found


def worker(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["mpiReplicaSpecs"]["Worker"]
    return found


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("written", list(WRITTEN))
def test_new_job_with_a_deletion_timestamp_is_reviewed(
    cluster: Cluster, namespace: str, way: str, written: str
) -> None:
    bad = pi(namespace, "bad", deletionTimestamp=WRITTEN[written])
    worker(bad)["replicas"] = 500
    worker(bad)["template"]["spec"]["hostNetwork"] = True
    output = cluster.attempt(*WAYS[way], stdin=bad)
    stored = cluster.get("mpijobs", "-n", namespace)["items"]
    assert stored == [], output
    if written != "empty":  # the API server rejects an empty time before the review
        assert "at most 100 allowed" in output


def test_new_job_with_null_uid_gets_a_time_limit(cluster: Cluster, namespace: str) -> None:
    """Server-side apply keeps the null. A service that cannot read it would inject nothing."""
    said = cluster.attempt(*SERVER_SIDE, stdin=pi(namespace, "no-id", uid=None))
    stored = cluster.get("mpijob", "no-id", "-n", namespace)
    assert stored["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400, said


CLAIMS: dict[str, dict[str, Any]] = {
    "owner": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}]},
    "copy": {"labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"}},
    "workload": {"annotations": {"kueue.x-k8s.io/prebuilt-workload-name": "w"}},
}
UPDATES = CLAIMS | {f"deleted-{name}": {"deletionTimestamp": value} for name, value in WRITTEN.items()}


@pytest.mark.parametrize("way", ["apply", "server-side", "merge", "json"])
@pytest.mark.parametrize("claim", list(UPDATES))
def test_update_that_claims_a_deletion_or_a_controller_is_reviewed(
    cluster: Cluster, namespace: str, way: str, claim: str
) -> None:
    cluster.kubectl(*WAYS["apply"], "-f", "-", stdin=pi(namespace, "good"))
    metadata = UPDATES[claim]
    bad = pi(namespace, "good", **metadata)
    worker(bad)["replicas"] = 500
    if way in WAYS:
        output = cluster.attempt(*WAYS[way], stdin=bad)
    else:
        spec = {"mpiReplicaSpecs": {"Worker": {"replicas": 500}}}
        merge: Any = {"metadata": metadata, "spec": spec}
        json_patch: Any = [
            *({"op": "add", "path": f"/metadata/{key}", "value": value} for key, value in metadata.items()),
            {"op": "replace", "path": "/spec/mpiReplicaSpecs/Worker/replicas", "value": 500},
        ]
        patch = json.dumps(merge if way == "merge" else json_patch)
        output = cluster.attempt("patch", "mpijob", "good", "-n", namespace, f"--type={way}", "-p", patch)
    if claim in CLAIMS:
        assert "at most 100 allowed" in output
    assert worker(cluster.get("mpijob", "good", "-n", namespace))["replicas"] == 2, output


def test_job_being_deleted_allows_only_removal_of_finalizers(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "-f", "-", stdin=pi(namespace, "going", finalizers=["example.com/wait"]))
    cluster.kubectl("delete", "mpijob", "going", "-n", namespace, "--wait=false")
    patch = ("patch", "mpijob", "going", "-n", namespace, "--type=merge", "-p")
    said = cluster.attempt(*patch, json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 500}}}}))
    assert "at most 100 allowed" in said
    cluster.kubectl(*patch, json.dumps({"metadata": {"finalizers": None}}))
    cluster.wait_for("the job to be gone", lambda: not cluster.get("mpijobs", "-n", namespace)["items"] or None)


@pytest.mark.parametrize("claim", list(CLAIMS))
def test_new_job_that_claims_a_controller_is_reviewed_and_gets_a_time_limit(
    cluster: Cluster, namespace: str, claim: str
) -> None:
    bad = pi(namespace, "claims", **CLAIMS[claim])
    worker(bad)["replicas"] = 500
    assert "at most 100 allowed" in cluster.attempt("create", stdin=bad)
    command = ("create", "--dry-run=server", "-o", "jsonpath={.spec.runPolicy.activeDeadlineSeconds}", "-f", "-")
    assert cluster.kubectl(*command, stdin=pi(namespace, "claims", **CLAIMS[claim])).stdout == "86400"


def test_value_removed_by_an_administrator_stays_removed(cluster: Cluster, namespace: str) -> None:
    tainted = pi(namespace, "forged")
    pod = worker(tainted)["template"]["spec"]
    pod["volumes"] = [{"name": "root", "hostPath": {"path": "/"}}]
    pod["hostNetwork"] = True
    pod["containers"][0]["env"] = [{"name": "LD_PRELOAD", "value": "/evil.so"}]
    paths = ["Worker:/spec/hostNetwork d3be1f85", "Worker:/spec/volumes/name=root 00000000"]
    tainted["metadata"] |= {
        "annotations": {INJECTED: json.dumps({"rdma": paths})},
        "finalizers": ["example.com/wait"],
    }
    cluster.kubectl("create", "-f", "-", stdin=tainted)
    clean = pi(namespace, "forged")
    while (done := cluster.kubectl("replace", "-f", "-", stdin=clean, check=False)).returncode:
        assert "(Conflict)" in done.stderr
    stored = cluster.get("mpijob", "forged", "-n", namespace)
    pod = worker(stored)["template"]["spec"]
    assert "hostNetwork" not in pod
    assert "volumes" not in pod
    assert "LD_PRELOAD" not in json.dumps(stored["spec"])
    assert "finalizers" not in stored["metadata"]
    assert INJECTED not in stored["metadata"].get("annotations", {})


def test_edit_of_the_stored_job_can_remove_injected_values(cluster: Cluster, namespace: str) -> None:
    job = pi(namespace, "edited")
    worker(job)["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    cluster.kubectl("create", "-f", "-", stdin=job)

    def injected() -> tuple[bool, bool]:
        live = cluster.get("mpijob", "edited", "-n", namespace)
        spec = worker(live)["template"]["spec"]
        return "initContainers" in launcher(live)["template"]["spec"], "activeDeadlineSeconds" in spec

    assert injected() == (True, True)
    cluster.kubectl("replace", "-f", "-", stdin=job)
    assert injected() == (True, True), "restored when the original file replaces the job"
    live = cluster.get("mpijob", "edited", "-n", namespace)
    del launcher(live)["template"]["spec"]["initContainers"], worker(live)["template"]["spec"]["activeDeadlineSeconds"]
    cluster.kubectl("replace", "-f", "-", stdin=live)
    assert injected() == (False, True), "only the time limit is restored"
