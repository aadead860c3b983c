"""The rule `child-names` reports existing objects whose names the operator needs for the job."""

from typing import Any

import pytest

from tests.support.any_job import Json
from tests.support.jobs import REMOVE
from tests.support.rule_checks import as_texts, fits_a_warning, violations
from tests.support.snapshots import head
from webhook.cluster.resources.pods import JOB_NAME
from webhook.cluster.snapshot import Snapshot
from webhook.rules import CauseReason, Violation

NEVER = "so the operator could never start the job"
LATER = "The job starts when it is gone."
KINDS = {"Service": "v1", "ConfigMap": "v1", "Pod": "v1", "Job": "batch/v1"}
NAMES = [("Service", "train"), ("ConfigMap", "train-config"), ("Job", "train-launcher"), ("Pod", "train-worker-3")]
OURS = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train", "uid": "1", "controller": True}


def child(kind: str, name: str, *, namespace: str = "team-a", owner: Any = None, **metadata: Any) -> dict[str, Any]:
    metadata |= {"name": name, "namespace": namespace} | ({"ownerReferences": [owner]} if owner else {})
    return {"apiVersion": KINDS[kind], "kind": kind, "metadata": metadata}


def test_existing_pod_is_reported_with_or_without_the_operators_label() -> None:
    for labels in ({JOB_NAME: "train"}, {JOB_NAME: ""}, {"app": "x"}):
        (result,) = violations("child-names", view=Snapshot([child("Pod", "train-worker-0", labels=labels)]))
        assert result.message.startswith('Pod "train-worker-0" exists')


def test_unknown_pods_without_the_label_cause_no_violation() -> None:
    labelled_pods, other_pods = head("pods"), head("other-pods")
    labelled = child("Pod", "train-worker-0", labels={JOB_NAME: "train"})
    assert len(violations("child-names", view=Snapshot([labelled_pods, labelled]))) == 1
    assert len(violations("child-names", view=Snapshot([other_pods, child("Pod", "train-worker-1")]))) == 1
    assert violations("child-names", view=Snapshot([labelled_pods])) == []


@pytest.mark.parametrize(("kind", "name"), NAMES)
class TestTakenNames:
    def test_object_without_owner_causes_a_rejection(self, kind: str, name: str) -> None:
        result = violations("child-names", view=Snapshot([child(kind, name)]))
        fault = f'{kind} "{name}" exists and is not the job\'s, {NEVER}'
        fix = f"Rename the job, or delete that {kind} if it is not needed."
        assert result == [Violation("metadata.name", fault, fix=fix, reason=CauseReason.FORBIDDEN)]

    @pytest.mark.parametrize("change", [{"kind": "PyTorchJob"}, {"name": "other"}, {"apiVersion": "x/v1"}])
    def test_object_of_another_owner_causes_a_rejection(self, kind: str, name: str, change: dict[str, str]) -> None:
        owner = {**OURS, **change}
        (result,) = violations("child-names", view=Snapshot([child(kind, name, owner=owner)]))
        assert f"exists and belongs to {owner['kind']} {owner['name']}" in result.message
        assert not result.advisory

    def test_object_of_a_former_job_causes_a_warning(self, kind: str, name: str) -> None:
        for changes in ({}, {"metadata.uid": "2"}):
            (result,) = violations("child-names", changes, view=Snapshot([child(kind, name, owner=OURS)]))
            assert as_texts([result]) == [
                f'(advice) metadata.name: {kind} "{name}" belongs to a former job of this name'
            ]
            assert result.fix == LATER

    def test_object_that_is_being_deleted_causes_a_warning(self, kind: str, name: str) -> None:
        view = Snapshot([child(kind, name, deletionTimestamp="2026-01-01T00:00:00Z")])
        (result,) = violations("child-names", view=view)
        assert as_texts([result]) == [f'(advice) metadata.name: {kind} "{name}" is still being deleted']
        assert fits_a_warning("child-names", result)

    def test_object_of_the_job_itself_is_accepted(self, kind: str, name: str) -> None:
        view = Snapshot([child(kind, name, owner=OURS)])
        assert violations("child-names", {"metadata.uid": "1"}, old={"Worker.replicas": 2}, view=view) == []

    @pytest.mark.parametrize("changes", [{"metadata.name": "other"}, {"metadata.name": "trai"}])
    def test_object_is_accepted_if_the_job_has_a_different_name(self, kind: str, name: str, changes: Json) -> None:
        assert violations("child-names", changes, view=Snapshot([child(kind, name)])) == []

    def test_object_in_another_namespace_is_accepted(self, kind: str, name: str) -> None:
        assert violations("child-names", view=Snapshot([child(kind, name, namespace="team-b")])) == []

    def test_job_for_another_cluster_is_accepted(self, kind: str, name: str) -> None:
        changes = {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}
        assert violations("child-names", changes, view=Snapshot([child(kind, name)])) == []

    def test_taken_worker_name_of_a_suspended_job_causes_a_warning(self, kind: str, name: str) -> None:
        """For a suspended job the operator creates all objects except the workers' pods."""
        (result,) = violations("child-names", {"spec.runPolicy.suspend": True}, view=Snapshot([child(kind, name)]))
        assert result.advisory == (kind == "Pod")


@pytest.mark.parametrize("others", [0, 10])
@pytest.mark.parametrize(
    "name", ["train-worker-4", "train-worker-03", "train-worker--1", "train-worker-", "train-worker-²", "worker-1"]
)
def test_pods_without_the_name_of_a_worker_are_accepted(name: str, others: int) -> None:
    pods = [child("Pod", name), *(child("Pod", f"x-{index}") for index in range(others))]
    assert violations("child-names", view=Snapshot(pods)) == []


@pytest.mark.parametrize("workers", [1, 4, 2**31 - 1])
def test_only_the_first_taken_name_of_a_pod_is_reported(workers: int) -> None:
    pods = [child("Pod", f"train-worker-{index}") for index in (0, 1, 2)]
    (result,) = violations("child-names", {"Worker.replicas": workers}, view=Snapshot(pods))
    assert '"train-worker-0"' in result.message


def test_all_taken_names_are_reported() -> None:
    result = violations("child-names", view=Snapshot([child(*pair) for pair in NAMES]))
    assert [violation.message.partition(" ")[0] for violation in result] == [kind for kind, _ in NAMES]


def test_unknown_objects_cause_no_violation() -> None:
    assert violations("child-names") == []
    without_name = {"metadata.name": REMOVE, "metadata.generateName": "train-"}
    assert violations("child-names", without_name, view=Snapshot([child("Job", "-launcher")])) == []
