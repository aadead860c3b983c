"""The cluster view from objects as kubectl prints them."""

from typing import Any

import pytest

from tests.jobs import GOOD, REMOVE, changed
from webhook.api.mpijob import MPIJob
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.cluster.view import (
    ABSENT,
    UNKNOWN,
    ClusterView,
    Namespace,
    PersistentVolumeClaim,
    PriorityClass,
    WorkloadPriorityClass,
)

TEAM_A: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "team-a", "labels": {"tier": "base"}, "uid": "1", "managedFields": [{}]},
    "status": {"phase": "Active"},
}


def test_it_is_a_cluster_view() -> None:
    view: ClusterView = Snapshot([TEAM_A, GOOD])
    assert view.namespace("team-a") == Namespace("team-a", {"tier": "base"})


def test_a_kind_that_is_there_is_known_completely() -> None:
    snapshot = Snapshot([TEAM_A])
    assert snapshot.namespace("team-b") is ABSENT
    assert snapshot.mpijob("team-a", "train") is UNKNOWN


def test_nothing_is_known_of_an_empty_file() -> None:
    snapshot = Snapshot([])
    assert snapshot.namespace("team-a") is UNKNOWN
    assert snapshot.mpijob("team-a", "train") is UNKNOWN
    assert snapshot.stored("team-a", "train") is None


def test_jobs() -> None:
    snapshot = Snapshot([GOOD, changed({"metadata.name": "other"})])
    job = snapshot.mpijob("team-a", "train")
    assert isinstance(job, MPIJob)
    assert job.workers == 4
    assert snapshot.stored("team-a", "train") == GOOD
    assert snapshot.mpijob("team-b", "train") is ABSENT
    assert snapshot.namespace("team-a") is UNKNOWN


def test_a_job_without_a_namespace_is_in_default() -> None:
    job = changed({"metadata.namespace": REMOVE})
    assert Snapshot([job]).stored("default", "train") == job


def test_labels_may_be_missing() -> None:
    assert Snapshot([{**TEAM_A, "metadata": {"name": "x"}}]).namespace("x") == Namespace("x", {})


def test_priority_classes() -> None:
    metadata = {"metadata": {"name": "high"}, "value": 1000}
    snapshot = Snapshot([{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **metadata}])
    assert snapshot.priority_class("high") == PriorityClass("high")
    assert snapshot.priority_class("low") is ABSENT
    assert snapshot.workload_priority_class("high") is UNKNOWN


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_workload_priority_classes(version: str) -> None:
    metadata = {"metadata": {"name": "high"}, "value": 1000}
    snapshot = Snapshot([{"apiVersion": f"kueue.x-k8s.io/{version}", "kind": "WorkloadPriorityClass", **metadata}])
    assert snapshot.workload_priority_class("high") == WorkloadPriorityClass("high")
    assert snapshot.workload_priority_class("low") is ABSENT
    assert snapshot.priority_class("high") is UNKNOWN


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
def test_claims(spec: Any, annotations: Any, storage_class: str | None) -> None:
    metadata = {"name": "data", "namespace": "team-a", "annotations": annotations}
    snapshot = Snapshot([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}])
    expected = PersistentVolumeClaim("team-a", "data", storage_class)
    assert snapshot.persistent_volume_claim("team-a", "data") == expected
    assert snapshot.persistent_volume_claim("team-b", "data") is ABSENT
    assert Snapshot([TEAM_A]).persistent_volume_claim("team-a", "data") is UNKNOWN


def test_other_kinds_and_other_groups_are_passed_over() -> None:
    others: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": 3},
        {"apiVersion": "example.com/v1", "kind": "Namespace", "metadata": []},
        {"kind": "MPIJob"},
    ]
    assert Snapshot(others).namespace("x") is UNKNOWN


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({**TEAM_A, "metadata": 3}, "a Namespace: metadata: must be a mapping, not a whole number"),
        (
            {**TEAM_A, "metadata": {"name": "x", "labels": {"a": 1}}},
            'Namespace "x": metadata.labels[...]: must be a string, not a whole number',
        ),
        ({"apiVersion": "v1", "kind": "Namespace"}, "a Namespace: metadata.name is missing"),
        ({**TEAM_A, "metadata": {}}, "a Namespace: metadata.name is missing"),
        (
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "x"},
                "spec": {"storageClassName": 3},
            },
            'PersistentVolumeClaim "x": spec.storageClassName: must be a string, not a whole number',
        ),
        (
            changed({"Worker.replicas": "4"}),
            'MPIJob "train": spec.mpiReplicaSpecs[Worker].replicas: must be a whole number, not a string',
        ),
    ],
)
def test_an_object_that_cannot_be_read_is_named(document: dict[str, Any], message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        Snapshot([TEAM_A, document])
    assert str(caught.value) == message
