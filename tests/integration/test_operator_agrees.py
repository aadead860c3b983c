"""The service rejects at creation the same jobs and fields that the real operator rejects after creation.

First the jobs are stored without a webhook, and the operator reports ValidationError events. Then the service starts
and rejects each job. The operator does not report some errors: it replaces an empty sshAuthMountPath and a missing
slotsPerWorker by defaults, and ignores a job with a foreign `managedBy`. `tests/conformance` compares these errors with
the operator's code.
"""

import json
from typing import Any

import pytest

from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster, has_condition
from tests.support.installation import service
from tests.support.installation.service import example
from tests.support.jobs import REMOVE, changed
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord

PI = assets().upstream_examples["pi"]
WORKER = "spec.mpiReplicaSpecs[Worker]"
LAUNCHER = "spec.mpiReplicaSpecs[Launcher]"

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "dotted.name": ({}, "metadata.name"),
    "long-" + "x" * 50: ({"Worker.replicas": 11}, "metadata.name"),
    "no-launcher": ({"Launcher": REMOVE}, LAUNCHER),
    "two-launchers": ({"Launcher.replicas": 2}, f"{LAUNCHER}.replicas"),
    "no-workers": ({"Worker.replicas": 0}, f"{WORKER}.replicas"),
    "workers-not-set": ({"Worker.replicas": REMOVE}, f"{WORKER}.replicas"),
    "always": ({"Worker.restartPolicy": "Always"}, f"{WORKER}.restartPolicy"),
    "exit-code": ({"Launcher.restartPolicy": "ExitCode"}, f"{LAUNCHER}.restartPolicy"),
    "no-container": ({"Worker.template.spec.containers": []}, f"{WORKER}.template.spec.containers"),
    "no-template": ({"Worker.template": REMOVE}, f"{WORKER}.template.spec.containers"),
    "slots": ({"spec.slotsPerWorker": -1}, "spec.slotsPerWorker"),
    "clean": ({"spec.runPolicy.cleanPodPolicy": "Sometimes"}, "spec.runPolicy.cleanPodPolicy"),
    "clean-empty": ({"spec.runPolicy.cleanPodPolicy": ""}, "spec.runPolicy.cleanPodPolicy"),
    "ttl": ({"spec.runPolicy.ttlSecondsAfterFinished": -1}, "spec.runPolicy.ttlSecondsAfterFinished"),
    "deadline": ({"spec.runPolicy.activeDeadlineSeconds": -1}, "spec.runPolicy.activeDeadlineSeconds"),
    "backoff": ({"spec.runPolicy.backoffLimit": -1}, "spec.runPolicy.backoffLimit"),
}
ACCEPTED: dict[str, dict[str, Any]] = {
    "launcher-defaults": {"Launcher.replicas": REMOVE, "Launcher.restartPolicy": REMOVE},
    "path-empty": {"spec.sshAuthMountPath": ""},
    "no-run-policy": {"spec.runPolicy": REMOVE},
    "x" * 53: {},
}


def create(cluster: Cluster, namespace: str, name: str, changes: dict[str, Any], *flags: str) -> str:
    job = changed(changes, example(PI, namespace=namespace, name=name))
    done = cluster.kubectl("create", "--validate=false", *flags, "-f", "-", stdin=job, check=False)
    return done.stdout + done.stderr


def record(job: dict[str, Any]) -> MPIJobRecord:
    found = MPI_JOBS.project(json.dumps(job).encode())
    assert found is not None
    return found


@pytest.mark.timeout(300)
def test_job_rejected_by_the_operator_is_rejected_at_creation(operator_cluster: Cluster, namespace: str) -> None:
    cluster = operator_cluster
    for name, (changes, _) in REFUSED.items():
        assert "created" in create(cluster, namespace, name, changes), name
    for name, changes in ACCEPTED.items():
        assert "created" in create(cluster, namespace, name, changes), name

    def events() -> dict[str, str]:
        found = cluster.get("events", "-n", namespace, "--field-selector=reason=ValidationError")["items"]
        return {event["involvedObject"]["name"]: event["message"] for event in found}

    cluster.wait_for("an Event for each job", lambda: set(events()) >= set(REFUSED) or None)
    messages = events()
    for name, (_, path) in REFUSED.items():
        assert path in messages[name], messages[name]

    for name in ACCEPTED:
        job = ("mpijob", name, "-n", namespace)
        cluster.wait_for(f"{name} to be taken up", lambda job=job: has_condition(cluster.get(*job), "Created") or None)
        assert name not in messages

    stored = {job["metadata"]["name"]: record(job) for job in cluster.get("mpijobs", "-n", namespace)["items"]}
    dead = {name for name, job in stored.items() if not job.over and not job.pods}
    assert dead == set(REFUSED), "exactly the rejected jobs have no pods"

    with service.running(cluster):
        for name, (changes, path) in REFUSED.items():
            # The stored job still exists, so the copy gets a different name, unless the name is the error.
            other = name if path == "metadata.name" else f"{name}-again"
            stderr = create(cluster, namespace, other, changes, "--dry-run=server")
            assert path in stderr, stderr
            assert "[upstream-contract]" in stderr, stderr
        for name, changes in ACCEPTED.items():
            stderr = create(cluster, namespace, f"y{name[1:]}", changes, "--dry-run=server")
            assert "[upstream-contract]" not in stderr, stderr


def test_time_limit_of_zero_fails_the_job_at_once(operator_cluster: Cluster, namespace: str) -> None:
    cluster, changes = operator_cluster, {"spec.runPolicy.activeDeadlineSeconds": 0}
    assert "created" in create(cluster, namespace, "no-time", changes)

    def failed() -> dict[str, Any] | None:
        job = cluster.get("mpijob", "no-time", "-n", namespace)
        return job if has_condition(job, "Failed") else None

    job = cluster.wait_for("the job to fail", failed)
    assert any(each.get("reason") == "DeadlineExceeded" for each in job["status"]["conditions"])
    with service.running(cluster):
        said = create(cluster, namespace, "no-time-again", changes, "--dry-run=server")
    assert "is 0 s, so the job fails as soon as it starts" in said


@pytest.mark.parametrize(
    ("name", "path"), [("worker", "spec.mpiReplicaSpecs[worker]"), ("Master", "spec.mpiReplicaSpecs[Master]")]
)
def test_replica_types_that_the_operator_ignores_are_rejected(
    cluster: Cluster, namespace: str, webhook: None, name: str, path: str
) -> None:
    said = create(cluster, namespace, "keys", {f"spec.mpiReplicaSpecs.{name}": {"replicas": 2}})
    assert f"{path}: the operator does not know" in said
