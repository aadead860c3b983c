"""The records of ResourceQuotas, MPIJobs and objects of Kueue."""

import json
from typing import Any

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.kueue_objects import Json, cluster_queue, cohort, config, flavor, local_queue, topology
from tests.support.quota_objects import quota
from tests.support.rule_checks import defaulted
from webhook.api import quantity
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.quantity import QuantityError
from webhook.api.quota_charges import pod_shape
from webhook.api.quota_scopes import Scope
from webhook.cluster.resource import Resource
from webhook.cluster.resources.cluster_queues import CLUSTER_QUEUES
from webhook.cluster.resources.cohorts import COHORTS
from webhook.cluster.resources.kueue_config import KEY, KUEUE_CONFIG
from webhook.cluster.resources.local_queues import LOCAL_QUEUES
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.resource_flavors import RESOURCE_FLAVORS
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS, ResourceQuota
from webhook.cluster.resources.topologies import TOPOLOGIES
from webhook.cluster.snapshot import Snapshot

FOUR = quantity.parse(4)


def project(document: Any) -> Any:
    resource = MPI_JOBS if document["kind"] == "MPIJob" else RESOURCE_QUOTAS
    return resource.project(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("status", "hard", "used"),
    [
        ({"hard": {"pods": "4"}, "used": {"pods": "4"}}, {"pods": FOUR}, {"pods": FOUR}),
        ({"hard": {"pods": "4"}}, {"pods": FOUR}, {}),
        ({}, {"pods": quantity.parse(9)}, {}),
        (None, {"pods": quantity.parse(9)}, {}),
    ],
)
def test_status_of_a_quota_takes_precedence_over_its_spec(status: Any, hard: Any, used: Any) -> None:
    assert project(quota({"pods": "9"}) | {"status": status}) == ResourceQuota("team-a", "q", hard, used)


def test_scopes_of_a_quota() -> None:
    selector = [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
    spec = {"hard": {}, "scopes": ["BestEffort"], "scopeSelector": {"matchExpressions": selector}}
    record = project(quota({}) | {"spec": spec})
    assert record.scopes == (Scope("BestEffort"), Scope("PriorityClass", "In", ("high",)))


def test_invalid_quota_is_an_error() -> None:
    with pytest.raises(QuantityError):
        project(quota({"pods": "many"}))


def test_record_of_a_job() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "q", "app": "x"}
    document = changed({"metadata.uid": "u", "metadata.labels": labels, "spec.runPolicy.suspend": True})
    record = project(document)
    assert (record.namespace, record.name, record.uid, record.queue) == ("team-a", "train", "u", "q")
    assert (record.suspended, record.over) == (True, False)
    job = defaulted(document)
    assert [(pods.role, pods.count) for pods in record.pods] == [(LAUNCHER, 1), (WORKER, 4)]
    assert [pods.shape for pods in record.pods] == [pod_shape(replica.template) for _, _, replica in job.replicas]


CLAIM = {
    "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}},
    "spec": {"volumeAttributesClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
}
FULL = {
    "spec": {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": 2}}}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"memory": "1Gi"}}}],
        "overhead": {"cpu": "100m"},
        "resources": {"limits": {"cpu": 4}},
        "runtimeClassName": "kata",
        "priorityClassName": "high",
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "gpus"}],
        "activeDeadlineSeconds": 60,
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["a"]}]}},
        "volumes": [{"ephemeral": {"volumeClaimTemplate": CLAIM}}],
    }
}


def test_record_has_all_parts_of_a_template_that_a_quota_counts() -> None:
    document = changed({"Worker.template": FULL})
    [_, workers] = project(document).pods
    assert workers.shape == pod_shape([*defaulted(document).replicas][1][2].template)
    assert workers.shape.claims[0].storage_class == "gold"
    assert workers.shape.terminating
    assert workers.shape.cross_namespace
    assert workers.shape.device_claims == ("gpus",)


CREATED, FAILED, SUCCEEDED = ({"type": kind, "status": "True"} for kind in ("Created", "Failed", "Succeeded"))


def test_equal_templates_share_a_shape() -> None:
    first, second = project(changed()), project(changed({"metadata.name": "other"}))
    assert first.pods[1].shape is second.pods[1].shape


@pytest.mark.parametrize(
    "changes",
    [
        {"status": {"conditions": [CREATED, FAILED], "completionTime": "2026-01-01T00:00:00Z"}},
        {"status": {"conditions": [SUCCEEDED], "completionTime": "2026-01-01T00:00:00Z"}},
        {"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_ended_job_has_no_pods(changes: dict[str, Any]) -> None:
    record = project(changed(changes))
    ended_at = "2026-01-01T00:00:00Z" if "status" in changes else ""
    assert record == MPIJobRecord("team-a", "train", "", over=True, ended_at=ended_at)
    assert MPI_JOBS.group is not None
    assert MPI_JOBS.group(record) is None, "an ended job is not in the group of its namespace"


@pytest.mark.parametrize(
    "changes",
    [
        {"status": {"conditions": [{"type": "Succeeded", "status": "False"}, {"type": "Running", "status": "True"}]}},
        {"status": {"conditions": [FAILED]}},  # a worker was evicted: the operator continues
        {"status": {}},
        {"spec.runPolicy": {}},
    ],
)
def test_job_that_has_not_ended_has_pods(changes: dict[str, Any]) -> None:
    record = project(changed(changes))
    assert not record.over
    assert len(record.pods) == 2
    assert MPI_JOBS.group is not None
    assert MPI_JOBS.group(record) == "team-a"


@pytest.mark.parametrize("manager", ["kueue.x-k8s.io/multikueue", "", "kueue.x-k8s.io/multikeueu"])
def test_job_with_a_different_manager_has_no_pods(manager: str) -> None:
    """The operator ignores a job that names another manager, even if that manager does not exist."""
    assert project(changed({"spec.runPolicy.managedBy": manager})).pods == ()


REJECTED = [
    {"metadata.name": "9-lives"},
    {"metadata.name": "x" * 54, "Worker.replicas": 11},
    {"Worker.replicas": REMOVE},
    {"Worker.restartPolicy": "ExitCode"},
    {"Worker.template.spec.containers": []},
    {"Launcher": REMOVE},
    {"Launcher.replicas": 2},
    {"spec.slotsPerWorker": -1},
    {"spec.mpiImplementation": "openmpi"},
    {"spec.runPolicy.cleanPodPolicy": "Always"},
    {"spec.runPolicy.ttlSecondsAfterFinished": -1},
    {"spec.runPolicy.backoffLimit": -1},
]


@pytest.mark.parametrize("changes", REJECTED)
def test_job_rejected_by_the_operator_has_pods_only_if_it_has_a_status(changes: dict[str, Any]) -> None:
    document = changed(changes)
    for status in ({}, None, {"conditions": []}):
        record = project({**document, "status": status})
        assert (record.over, record.pods) == (False, ())
        assert project(MPI_JOBS.trim({**document, "status": status})) == record
    assert project({**document, "status": {"conditions": [CREATED]}}).pods != ()


@pytest.mark.parametrize(
    "changes",
    [
        {"Worker": REMOVE},
        {"spec.slotsPerWorker": 0},
        {"spec.runPolicy": REMOVE},
        {"spec.launcherCreationPolicy": "Later"},
        {"spec.mpiReplicaSpecs.Other": {}},
        {"Worker.template.spec.volumes": [{"name": "ssh-auth"}]},
    ],
)
def test_job_that_the_operator_may_accept_has_pods(changes: dict[str, Any]) -> None:
    """A job without a status may be new, or a quota may reject its pods for now."""
    assert project(changed(changes)).pods != ()


def test_trimmed_job_has_only_the_fields_of_the_record() -> None:
    secret = {"name": "TOKEN", "value": "secret"}
    document = changed({"Worker.template": FULL, "Launcher.template.spec.containers.0.env": [secret]})
    trimmed = MPI_JOBS.trim(document)
    assert "TOKEN" not in json.dumps(trimmed)
    assert "command" not in json.dumps(trimmed)
    assert trimmed["spec"]["mpiReplicaSpecs"]["Worker"]["template"] == FULL
    assert project(trimmed) == project(document)


def test_record_has_the_network_policy_and_the_generation() -> None:
    annotations = {"training.openshift.io/network-policy": "isolated", "other": "x"}
    metadata = {"name": "train", "namespace": "team-a", "generation": 3, "annotations": annotations}
    record = project({"kind": "MPIJob", "metadata": metadata, "spec": {}})
    assert (record.generation, record.network_policy) == (3, "isolated")
    trimmed = MPI_JOBS.trim({"metadata": metadata, "spec": {}})["metadata"]["annotations"]
    assert trimmed == {"training.openshift.io/network-policy": "isolated"}


OBJECTS: list[tuple[Resource[Any, Any], Json]] = [
    (CLUSTER_QUEUES, cluster_queue("a", {"f": {"cpu": (1, 2, 3)}}, cohort="c", stopPolicy="Hold", inactive="X")),
    (LOCAL_QUEUES, local_queue("a", "b", inactive="X")),
    (COHORTS, cohort("a", {"f": {"cpu": 1}}, parent="b")),
    (RESOURCE_FLAVORS, flavor("a", {"b": "c"}, nodeTaints=[{"key": "t", "effect": "NoSchedule"}], topologyName="x")),
    (TOPOLOGIES, topology("a", "zone", "rack")),
    (KUEUE_CONFIG, config()),
]


@pytest.mark.parametrize(("resource", "manifest"), OBJECTS, ids=[resource.kind for resource, _ in OBJECTS])
def test_trimmed_object_has_the_same_record(resource: Resource[Any, Any], manifest: Json) -> None:
    whole = Snapshot([manifest]).all(resource)
    assert isinstance(whole, dict)
    assert len(whole) == 1
    assert Snapshot([resource.trim(manifest)]).all(resource) == whole


def test_trimmed_config_map_has_only_the_configuration_of_kueue() -> None:
    manifest = config()
    manifest["data"]["secret"] = "x"
    assert list(KUEUE_CONFIG.trim(manifest)["data"]) == [KEY]


def test_cohort_is_read_from_its_field_in_v1beta1() -> None:
    newer = cluster_queue("a", cohort="c")
    older = cluster_queue("a", cohort="c") | {"apiVersion": "kueue.x-k8s.io/v1beta1"}
    older["spec"]["cohort"] = older["spec"].pop("cohortName")
    assert Snapshot([older]).groups(CLUSTER_QUEUES) == Snapshot([newer]).groups(CLUSTER_QUEUES)
    assert list(Snapshot([older]).groups(CLUSTER_QUEUES)) == ["c"]  # type: ignore[arg-type]
