from typing import Any

import pytest

from tests.support.jobs import REMOVE
from tests.support.rule_checks import found, violations

QUEUED = {"metadata.labels": {"kueue.x-k8s.io/queue-name": "team-queue"}}
SUSPENDED = {"spec.runPolicy.suspend": True}

FIXED = [
    ({"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, "spec.runPolicy.managedBy"),
    ({"spec.mpiImplementation": "Intel"}, "spec.mpiImplementation"),
    ({"spec.slotsPerWorker": 4}, "spec.slotsPerWorker"),
    ({"spec.runLauncherAsWorker": True}, "spec.runLauncherAsWorker"),
    ({"spec.sshAuthMountPath": "/home/mpiuser/.ssh"}, "spec.sshAuthMountPath"),
]


@pytest.mark.parametrize(("changes", "path"), FIXED)
def test_a_running_job_keeps_what_would_break_it(changes: dict[str, Any], path: str) -> None:
    [violation] = violations("update-safety", changes, old={})
    assert violation.path == path
    assert violation.message.endswith("while the job runs, which breaks it")


@pytest.mark.parametrize(("changes", "path"), FIXED)
def test_a_suspended_job_may_change_even_while_it_resumes(changes: dict[str, Any], path: str) -> None:
    assert violations("update-safety", {**changes, **SUSPENDED}, old=SUSPENDED) == []
    assert violations("update-safety", changes, old=SUSPENDED) == [], path


def test_suspending_does_not_excuse_a_change_in_the_same_update() -> None:
    changes = {"spec.slotsPerWorker": 4, **SUSPENDED}
    assert [v.path for v in violations("update-safety", changes, old={})] == ["spec.slotsPerWorker"]


def test_it_says_what_changed() -> None:
    [violation] = violations("update-safety", {"spec.mpiImplementation": "Intel"}, old={})
    assert violation.message == 'changed from "OpenMPI" to "Intel" while the job runs, which breaks it'
    [violation] = violations("update-safety", {"spec.runLauncherAsWorker": True}, old={})
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
def test_what_may_change(changes: dict[str, Any], old: dict[str, Any]) -> None:
    assert found(violations("update-safety", changes, old=old)) == []


def test_scaling_what_kueue_has_admitted_is_warned() -> None:
    [violation] = violations("update-safety", {**QUEUED, "Worker.replicas": 8}, old=QUEUED)
    assert violation.advisory
    assert "Kueue stops the job" in violation.message
    suspended = {**QUEUED, **SUSPENDED}
    assert violations("update-safety", {**suspended, "Worker.replicas": 8}, old=suspended) == []


def test_scaling_down_with_the_launcher_as_worker_is_warned() -> None:
    old = {"spec.runLauncherAsWorker": True}
    [violation] = violations("update-safety", {**old, "Worker.replicas": 3}, old=old)
    assert violation.advisory
    assert violations("update-safety", {**old, "Worker.replicas": 5}, old=old) == []


def test_new_jobs_are_not_looked_at() -> None:
    assert violations("update-safety", {"spec.slotsPerWorker": 4}) == []
