"""A cluster view that is made from objects in the output of kubectl."""

from typing import Any

import pytest

from tests.support.jobs import GOOD, REMOVE, changed
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.persistent_volume_claims import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from webhook.cluster.resources.priority_classes import PRIORITY_CLASSES, PriorityClass
from webhook.cluster.resources.workload_priority_classes import WORKLOAD_PRIORITY_CLASSES, WorkloadPriorityClass
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView

TEAM_A: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "team-a", "labels": {"tier": "base"}, "uid": "1", "managedFields": [{}]},
    "status": {"phase": "Active"},
}


def test_object_is_absent_if_the_file_has_only_other_objects_of_its_kind() -> None:
    view: ClusterView = Snapshot([TEAM_A, GOOD])
    assert view.get(NAMESPACES, "team-a") == Namespace("team-a", {"tier": "base"})
    assert view.get(NAMESPACES, "team-b") is ABSENT


def test_everything_is_unknown_if_the_file_is_empty() -> None:
    snapshot = Snapshot([])
    assert snapshot.get(NAMESPACES, "team-a") is UNKNOWN
    assert snapshot.jobs.get(("team-a", "train")) is None


def test_jobs_are_stored_unchanged() -> None:
    snapshot = Snapshot([GOOD, changed({"metadata.name": "other"})])
    assert snapshot.jobs.get(("team-a", "train")) == GOOD
    assert snapshot.jobs.get(("team-b", "train")) is None
    assert snapshot.get(NAMESPACES, "team-a") is UNKNOWN


def test_job_without_a_namespace_is_in_the_namespace_default() -> None:
    job = changed({"metadata.namespace": REMOVE})
    assert Snapshot([job]).jobs.get(("default", "train")) == job


def test_namespace_without_labels_is_read() -> None:
    assert Snapshot([{**TEAM_A, "metadata": {"name": "x"}}]).get(NAMESPACES, "x") == Namespace("x", {})


@pytest.mark.parametrize(
    ("resource", "other", "version", "expected"),
    [
        (PRIORITY_CLASSES, WORKLOAD_PRIORITY_CLASSES, "scheduling.k8s.io/v1", PriorityClass("high", 1000)),
        (WORKLOAD_PRIORITY_CLASSES, PRIORITY_CLASSES, "kueue.x-k8s.io/v1beta1", WorkloadPriorityClass("high")),
        (WORKLOAD_PRIORITY_CLASSES, PRIORITY_CLASSES, "kueue.x-k8s.io/v1beta2", WorkloadPriorityClass("high")),
    ],
)
def test_priority_classes_are_read(resource: Any, other: Any, version: str, expected: object) -> None:
    manifest = {"apiVersion": version, "kind": type(expected).__name__, "metadata": {"name": "high"}, "value": 1000}
    snapshot = Snapshot([manifest])
    assert snapshot.get(resource, "high") == expected
    assert snapshot.get(resource, "low") is ABSENT
    assert snapshot.get(other, "high") is UNKNOWN


@pytest.mark.parametrize(
    ("spec", "annotations", "storage_class"),
    [
        ({"storageClassName": "fast"}, None, "fast"),
        ({"storageClassName": ""}, {}, ""),
        ({}, {}, None),
        (None, None, None),
        ({"storageClassName": "fast"}, {"volume.beta.kubernetes.io/storage-class": "older"}, "older"),
    ],
)
def test_claims_are_read(spec: Any, annotations: Any, storage_class: str | None) -> None:
    metadata = {"name": "data", "namespace": "team-a", "annotations": annotations}
    snapshot = Snapshot([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}])
    expected = PersistentVolumeClaim("team-a", "data", storage_class)
    assert snapshot.get(PERSISTENT_VOLUME_CLAIMS, ("team-a", "data")) == expected
    assert snapshot.get(PERSISTENT_VOLUME_CLAIMS, ("team-b", "data")) is ABSENT
    assert Snapshot([TEAM_A]).get(PERSISTENT_VOLUME_CLAIMS, ("team-a", "data")) is UNKNOWN


def test_other_kinds_and_groups_are_ignored() -> None:
    others: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Event", "metadata": 3},
        {"apiVersion": "example.com/v1", "kind": "Namespace", "metadata": []},
        {"kind": "MPIJob"},
    ]
    assert Snapshot(others).get(NAMESPACES, "x") is UNKNOWN


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({**TEAM_A, "metadata": 3}, "a Namespace: metadata: must be a mapping, not a whole number"),
        (
            {**TEAM_A, "metadata": {"name": "x", "labels": {"a": 1}}},
            'Namespace "x": metadata.labels[...]: must be a string, not a whole number',
        ),
        ({**TEAM_A, "metadata": {}}, "a Namespace: metadata.name is missing"),
        (
            {**TEAM_A, "kind": "PersistentVolumeClaim", "spec": {"storageClassName": 3}},
            'PersistentVolumeClaim "team-a": spec.storageClassName: must be a string, not a whole number',
        ),
        (
            changed({"Worker.replicas": "4"}),
            'MPIJob "train": spec.mpiReplicaSpecs[Worker].replicas: must be a whole number, not a string',
        ),
    ],
)
def test_invalid_object_is_an_error_with_its_name(document: dict[str, Any], message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        Snapshot([TEAM_A, document])
    assert str(caught.value) == message
