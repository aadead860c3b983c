from typing import Any

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.kueue_objects import local_queue
from tests.support.rule_checks import as_texts, decide, fits_a_warning, violations
from webhook.cluster.snapshot import Snapshot

QUEUED = {"metadata.labels": {"kueue.x-k8s.io/queue-name": "team-queue"}}
KUEUE = Snapshot([local_queue("team-queue", "cluster-queue")])
SUSPENDED = {"spec.runPolicy.suspend": True}


def status(*types: str, **fields: Any) -> dict[str, Any]:
    """The status of a job for which the operator has written these conditions."""
    return {"status": {"conditions": [{"type": each, "status": "True"} for each in types], **fields}}


RUNS = status("Created", "Running")
ENDED = status("Created", "Succeeded", completionTime="2026-01-01T00:00:00Z")
OWNER = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train", "uid": "1", "controller": True}

FIXED = [
    ({"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, "spec.runPolicy.managedBy"),
    ({"spec.mpiImplementation": "Intel"}, "spec.mpiImplementation"),
    ({"spec.slotsPerWorker": 4}, "spec.slotsPerWorker"),
    ({"spec.runLauncherAsWorker": True}, "spec.runLauncherAsWorker"),
    ({"spec.sshAuthMountPath": "/home/mpiuser/.ssh"}, "spec.sshAuthMountPath"),
]


@pytest.mark.parametrize(("changes", "path"), FIXED)
def test_change_that_breaks_a_running_job_is_rejected(changes: dict[str, Any], path: str) -> None:
    [violation] = violations("update-safety", changes, old=RUNS)
    assert violation.path == path
    assert violation.message.endswith("while the job runs, which breaks it")


@pytest.mark.parametrize(("changes", "path"), FIXED)
def test_suspended_job_may_change_even_in_the_update_that_resumes_it(changes: dict[str, Any], path: str) -> None:
    assert violations("update-safety", {**changes, **SUSPENDED}, old=SUSPENDED) == []
    assert violations("update-safety", changes, old=SUSPENDED) == [], path


@pytest.mark.parametrize(("changes", "path"), FIXED)
def test_job_that_the_operator_has_not_started_may_change(changes: dict[str, Any], path: str) -> None:
    for old in ({}, {"status": {}}, {"status": {"conditions": [], "replicaStatuses": {}}}):
        assert violations("update-safety", changes, old=old) == [], path


@pytest.mark.parametrize("uid", ["1", "another"])
def test_change_is_rejected_only_if_the_launcher_belongs_to_this_job(uid: str) -> None:
    """The operator has created the launcher but has not yet written the status.

    A launcher whose owner has a different uid belongs to a deleted job of the same name.
    """
    metadata = {"name": "train-launcher", "namespace": "team-a", "ownerReferences": [OWNER]}
    view = Snapshot([{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}])
    result = violations("update-safety", {"spec.slotsPerWorker": 4}, old={"metadata.uid": uid}, view=view)
    assert len(result) == (1 if uid == "1" else 0)


@pytest.mark.parametrize(("changes", "path"), FIXED)
def test_change_of_a_job_with_waiting_pods_is_rejected(changes: dict[str, Any], path: str) -> None:
    [violation] = violations("update-safety", changes, old=status("Created"))
    assert (violation.path, violation.advisory) == (path, False)
    assert violation.message.endswith("after the job's pods were created, which breaks it")


@pytest.mark.parametrize(("changes", "path"), FIXED)
def test_change_of_an_ended_job_causes_a_warning(changes: dict[str, Any], path: str) -> None:
    [violation] = violations("update-safety", changes, old=ENDED)
    assert (violation.path, violation.advisory) == (path, True)
    assert violation.message == "a change has no effect: the job has ended"
    assert violation.fix == "Make a new job."
    assert fits_a_warning("update-safety", violation)
    assert violations("update-safety", {**QUEUED, "Worker.replicas": 8}, old={**ENDED, **QUEUED}) == []


def test_job_with_an_evicted_worker_has_not_ended() -> None:
    """The condition Failed without `completionTime` is about a worker."""
    evicted = status("Created", "Running", "Failed")
    [violation] = violations("update-safety", {"spec.slotsPerWorker": 4}, old=evicted)
    assert not violation.advisory


def test_malformed_status_is_ignored() -> None:
    odd = {"status": {"conditions": [None, {"type": "Succeeded"}], "completionTime": "x"}}
    [violation] = violations("update-safety", {"spec.slotsPerWorker": 4}, old=odd)
    assert not violation.advisory
    for unreadable in (None, [], "x", {"conditions": 3}):
        assert violations("update-safety", {"spec.slotsPerWorker": 4}, old={"status": unreadable}) == []


def test_suspending_does_not_excuse_a_change_in_the_same_update() -> None:
    changes = {"spec.slotsPerWorker": 4, **SUSPENDED}
    assert [v.path for v in violations("update-safety", changes, old=RUNS)] == ["spec.slotsPerWorker"]


def test_message_has_the_old_and_the_new_value() -> None:
    [violation] = violations("update-safety", {"spec.mpiImplementation": "Intel"}, old=RUNS)
    assert violation.message == 'changed from "OpenMPI" to "Intel" while the job runs, which breaks it'
    [violation] = violations("update-safety", {"spec.runLauncherAsWorker": True}, old=RUNS)
    assert violation.message == "changed from false to true while the job runs, which breaks it"


@pytest.mark.parametrize(
    ("changes", "old"),
    [
        ({"spec.runPolicy.managedBy": "kubeflow.org/mpi-operator"}, {}),
        ({}, {"spec.runPolicy.managedBy": "kubeflow.org/mpi-operator"}),
        ({"spec.runLauncherAsWorker": REMOVE}, {}),
        ({"spec.mpiImplementation": REMOVE}, {}),
        (SUSPENDED, {}),
        ({"Worker.replicas": 8}, {}),
        ({"Worker.replicas": 2}, {}),
        ({"spec.runPolicy.cleanPodPolicy": "All"}, {}),
        ({"spec.runPolicy.schedulingPolicy": {"minAvailable": 3}}, {}),
        ({"Worker.template.spec.containers.0.image": "x:2"}, {}),
    ],
)
def test_change_of_other_fields_of_a_running_job_is_accepted(changes: dict[str, Any], old: dict[str, Any]) -> None:
    assert as_texts(violations("update-safety", changes, old={**RUNS, **old})) == []


def test_scaling_a_job_that_kueue_admitted_causes_a_warning() -> None:
    changes, old = {**QUEUED, "Worker.replicas": 8}, {**RUNS, **QUEUED}
    [violation] = violations("update-safety", changes, old=old, view=KUEUE)
    assert violation.advisory
    assert "Kueue stops the job" in violation.message
    assert violations("update-safety", changes, old=old) == [], "the cluster may have no Kueue"
    suspended = {**QUEUED, **SUSPENDED}
    assert violations("update-safety", {**suspended, "Worker.replicas": 8}, old=suspended, view=KUEUE) == []


def test_scaling_down_a_job_whose_launcher_is_a_worker_causes_a_warning() -> None:
    old = {**RUNS, "spec.runLauncherAsWorker": True}
    [violation] = violations("update-safety", {**old, "Worker.replicas": 3}, old=old)
    assert violation.advisory
    assert violations("update-safety", {**old, "Worker.replicas": 5}, old=old) == []


def test_new_job_is_not_checked() -> None:
    assert violations("update-safety", {"spec.slotsPerWorker": 4}) == []


CONTAINERS = [
    ({"Worker.template.spec.containers.0.image": "registry.example.com/mpi:2"}, "Worker"),
    ({"Launcher.template.spec.containers.0.env": [{"name": "A", "value": "b"}]}, "Launcher"),
    ({"Worker.template.spec.initContainers": [{"name": "i", "image": "a:1"}]}, "Worker"),
    ({"Worker.template.spec.containers.0.readinessProbe": {"tcpSocket": {"port": 22}}}, "Worker"),
    ({"Worker.template.spec.containers.0.lifecycle": {"preStop": {"exec": {"command": ["sync"]}}}}, "Worker"),
    ({"Worker.template.spec.containers.0.imagePullPolicy": "Always"}, "Worker"),
    ({"Launcher.template.spec.containers.0.workingDir": "/data"}, "Launcher"),
]


@pytest.mark.parametrize(("changes", "role"), CONTAINERS)
def test_changing_containers_of_a_job_that_kueue_admitted_causes_a_warning(changes: dict[str, Any], role: str) -> None:
    queued = {**RUNS, **QUEUED}
    [violation] = violations("update-safety", {**changes, **QUEUED}, old=queued, view=KUEUE)
    assert violation.path == f"spec.mpiReplicaSpecs[{role}].template"
    assert violation.advisory
    assert fits_a_warning("update-safety", violation)
    assert violations("update-safety", changes, old=RUNS, view=KUEUE) == [], "the job is in no queue"
    assert violations("update-safety", {**changes, **QUEUED}, old=queued) == [], "the cluster may have no Kueue"
    suspended = {**QUEUED, **SUSPENDED}
    assert violations("update-safety", {**changes, **suspended}, old=suspended, view=KUEUE) == []


def test_review_of_an_update_compares_both_documents() -> None:
    old = {**RUNS, **QUEUED}
    decision = decide(changed({**old, **CONTAINERS[3][0]}), old=changed(old), view=KUEUE)
    assert "so Kueue restarts the job" in "\n".join(decision.warnings)


@pytest.mark.parametrize("part", ["metadata.labels", "metadata.annotations", "spec.nodeSelector"])
def test_field_that_kueue_does_not_compare_may_change(part: str) -> None:
    changes = {f"Worker.template.{part}": {"a": "b"}, **QUEUED}
    assert violations("update-safety", changes, old={**RUNS, **QUEUED}, view=KUEUE) == []
