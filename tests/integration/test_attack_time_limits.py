"""Users try to run jobs longer than a policy allows, with the real API server and operator."""

import json
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.controlplane.nodes import BY_HAND, KEEP_RUNNING
from tests.support.installation.service import example

pytestmark = [pytest.mark.usefixtures("webhook"), pytest.mark.timeout(300)]
PI = assets().upstream_examples["pi"]
SEVEN_DAYS = 7 * 24 * 60 * 60
WORKERS = "training.kubeflow.org/job-role=worker"


class Job:
    """The job `pi` with a time limit of 5 s. The test writes the status of the worker pods, because no kubelet does."""

    def __init__(self, cluster: Cluster, namespace: str, **spec: Any) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.document = example(PI, namespace=namespace)
        replicas = self.document["spec"]["mpiReplicaSpecs"]
        for role, annotation in (("Launcher", KEEP_RUNNING), ("Worker", BY_HAND)):
            replicas[role]["template"]["metadata"] = {"annotations": {annotation: "yes"}}
        self.document["spec"] |= {"runPolicy": {"activeDeadlineSeconds": 5}, **spec}

    def create(self) -> str:
        done = self.cluster.kubectl("create", "-f", "-", stdin=self.document, check=False)
        return done.stdout + done.stderr

    def patch(self, **run_policy: Any) -> str:
        patch = json.dumps({"spec": {"runPolicy": run_policy}})
        command = ("patch", "mpijob", "pi", "-n", self.namespace, "--type=merge", "-p", patch)
        done = self.cluster.kubectl(*command, check=False)
        return done.stdout + done.stderr

    def workers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.get("pods", "-n", self.namespace, "-l", WORKERS)["items"]
        return found

    def launchers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.get("jobs", "-n", self.namespace)["items"]
        return found

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.get("mpijob", "pi", "-n", self.namespace).get("status", {})
        return found

    def wait_for_workers(self) -> None:
        def scheduled() -> bool | None:
            return [bool(pod["spec"].get("nodeName")) for pod in self.workers()] == [True, True] or None

        self.cluster.wait_for("two workers with nodes", scheduled)

    def report_workers(self, phase: str, reason: str | None = None) -> None:
        """Write the status of each worker pod, as its kubelet would. No worker becomes ready."""
        not_ready = {"type": "Ready", "status": "False"}
        status = {"phase": phase, "reason": reason, "conditions": [not_ready]}
        for pod in self.workers():
            command = ("patch", "pod", pod["metadata"]["name"], "-n", self.namespace, "--subresource=status")
            self.cluster.kubectl(*command, "--type=merge", "-p", json.dumps({"status": status}))


@pytest.mark.parametrize("as_worker", [False, True])
def test_workers_without_a_launcher_have_a_separate_time_limit(
    operator_cluster: Cluster, namespace: str, as_worker: bool
) -> None:
    cluster = operator_cluster
    for scope in ("Terminating", "NotTerminating"):
        quota = {"hard": {"pods": "9"}, "scopes": [scope]}
        metadata = {"name": scope.lower(), "namespace": namespace}
        document = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": quota}
        cluster.kubectl("create", "-f", "-", stdin=document)
    job = Job(cluster, namespace, launcherCreationPolicy="WaitForWorkersReady", runLauncherAsWorker=as_worker)
    gates = [{"conditionType": "example.com/never"}]
    job.document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["readinessGates"] = gates
    assert "created" in job.create()
    job.wait_for_workers()
    job.report_workers("Running")

    assert [pod["spec"].get("activeDeadlineSeconds") for pod in job.workers()] == [SEVEN_DAYS] * 2

    def counted() -> bool | None:
        quotas = cluster.get("resourcequotas", "-n", namespace)["items"]
        used = {quota["metadata"]["name"]: quota.get("status", {}).get("used", {}).get("pods") for quota in quotas}
        return used == {"terminating": "2", "notterminating": "0"} or None

    cluster.wait_for("the quota of the scope Terminating to count both workers", counted)

    def both_active() -> bool | None:
        return job.status().get("replicaStatuses", {}).get("Worker", {}).get("active") == 2 or None

    cluster.wait_for("the operator to see both workers run", both_active)
    assert job.launchers() == [], "the job's limit applies only to a launcher"

    before = [pod["metadata"]["uid"] for pod in job.workers()]
    job.report_workers("Failed", "DeadlineExceeded")

    def seen() -> bool | None:
        return job.status().get("replicaStatuses", {}).get("Worker", {}).get("failed") == 2 or None

    cluster.wait_for("the operator to see that both workers failed", seen)
    assert [pod["metadata"]["uid"] for pod in job.workers()] == before, "the operator does not replace failed workers"
    assert job.launchers() == []

    assert "patched" in job.patch(suspend=True)
    cluster.wait_for("the suspended launcher", lambda: job.launchers() or None)
    assert "patched" in job.patch(suspend=False)

    def ended() -> bool | None:
        conditions = job.status().get("conditions", [])
        return any(one["type"] == "Failed" and one["reason"] == "DeadlineExceeded" for one in conditions) or None

    cluster.wait_for("the job to fail at the launcher's time limit, which begins after the suspension", ended)


def test_workers_have_a_time_limit_if_the_api_server_rejects_the_launcher(
    operator_cluster: Cluster, namespace: str
) -> None:
    job = Job(operator_cluster, namespace)
    above = {"key": "example.com/level", "operator": "Gt", "value": "3", "effect": "NoSchedule"}
    job.document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["tolerations"] = [above]
    assert "created" in job.create()
    job.wait_for_workers()
    events = ("get", "events", "-n", namespace, "-o", "jsonpath={.items[*].message}")
    operator_cluster.wait_for("the rejection", lambda: '"Gt"' in operator_cluster.kubectl(*events).stdout or None)
    assert job.launchers() == []
    assert [pod["spec"].get("activeDeadlineSeconds") for pod in job.workers()] == [SEVEN_DAYS] * 2


@pytest.mark.parametrize("keeps", ["None", "Running"])
def test_workers_keep_their_time_limit_after_updates_and_deletion_of_the_job(
    operator_cluster: Cluster, namespace: str, keeps: str
) -> None:
    job = Job(operator_cluster, namespace, runPolicy={"activeDeadlineSeconds": 600, "cleanPodPolicy": keeps})
    assert "created" in job.create()
    job.wait_for_workers()
    assert [pod["spec"].get("activeDeadlineSeconds") for pod in job.workers()] == [SEVEN_DAYS] * 2
    assert "patched" in job.patch(cleanPodPolicy="None")
    operator_cluster.kubectl("delete", "mpijob", "pi", "-n", namespace, "--cascade=orphan")
    assert [pod["spec"].get("activeDeadlineSeconds") for pod in job.workers()] == [SEVEN_DAYS] * 2


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_grace_period_of_a_year_is_rejected_and_one_of_an_hour_is_accepted(
    operator_cluster: Cluster, namespace: str, role: str
) -> None:
    job = Job(operator_cluster, namespace)
    pod = job.document["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    pod["terminationGracePeriodSeconds"] = 365 * 24 * 60 * 60
    field = f"spec.mpiReplicaSpecs[{role}].template.spec.terminationGracePeriodSeconds"
    assert f"{field}: 31536000 s are longer than 1h (3600 s)" in job.create()
    pod["terminationGracePeriodSeconds"] = 3600
    assert "created" in job.create()
