"""Updates of a stored job through the real API server: patches, scaling, suspension, deletion."""

import json
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import KEEP_RUNNING
from tests.support.installation.service import example

pytestmark = [pytest.mark.usefixtures("webhook"), pytest.mark.timeout(300)]
PI = assets().upstream_examples["pi"]


class Job:
    """A job named `pi`, which does not end."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        job = example(PI, namespace=namespace)
        job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["metadata"] = {"annotations": {KEEP_RUNNING: "yes"}}
        cluster.kubectl("create", "-f", "-", stdin=job)

    def get(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.get("mpijob", "pi", "-n", self.namespace)
        return found

    def patch(self, patch: str, *flags: str) -> str:
        """Merge-patch the job. Returns kubectl's output, also after an error."""
        command = ("patch", "mpijob", "pi", "-n", self.namespace, "--type=merge", "-p", patch, *flags)
        done = self.cluster.kubectl(*command, check=False)
        return done.stdout + done.stderr

    def workers(self, replicas: int) -> str:
        return self.patch(json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}))

    def wait_for(self, condition: str) -> None:
        def reached() -> bool | None:
            return has_condition(self.get(), condition) or None

        self.cluster.wait_for(f"the job to be {condition}", reached)

    def wait_for_workers(self, count: int) -> None:
        selector = "training.kubeflow.org/job-role=worker"

        def counted() -> bool | None:
            pods = self.cluster.get("pods", "-n", self.namespace, "-l", selector)["items"]
            return len([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]) == count or None

        self.cluster.wait_for(f"{count} workers", counted)


@pytest.fixture
def job(operator_cluster: Cluster, namespace: str) -> Job:
    running = Job(operator_cluster, namespace)
    running.wait_for("Running")
    return running


def test_running_job_can_be_patched_scaled_suspended_resumed_and_deleted(job: Job) -> None:
    assert "patched" in job.patch('{"metadata": {"labels": {"team": "a"}}}')
    assert "patched" in job.patch('{"spec": {"runPolicy": {"cleanPodPolicy": "All"}}}')

    assert "patched" in job.workers(4)
    job.wait_for_workers(4)
    assert "patched" in job.workers(3)
    job.wait_for_workers(3)
    refused = job.workers(1)
    assert "1 worker, at least 2 required" in refused

    refused = job.patch('{"spec": {"slotsPerWorker": 3}}')
    assert "spec.slotsPerWorker: changed from 1 to 3 while the job runs, which breaks it" in refused
    refused = job.patch('{"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}')
    assert "spec.runPolicy.managedBy: changed from" in refused

    assert "patched" in job.patch('{"spec": {"runPolicy": {"suspend": true}}}')
    job.wait_for("Suspended")
    job.wait_for_workers(0)
    assert "patched" in job.patch('{"spec": {"slotsPerWorker": 2}}')
    assert "patched" in job.patch('{"spec": {"runPolicy": {"suspend": false}}}')
    job.wait_for("Running")
    job.wait_for_workers(3)

    job.cluster.kubectl("delete", "mpijob", "pi", "-n", job.namespace, "--cascade=foreground", "--timeout=60s")
    assert job.cluster.get("mpijobs", "-n", job.namespace)["items"] == []
    assert job.cluster.get("jobs", "-n", job.namespace)["items"] == []
