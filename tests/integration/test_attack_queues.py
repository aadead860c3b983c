"""A tenant cannot evade a required queue, or bring in by an update what a new job may not have: with real Kueue."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.queued_jobs import ASK, QUEUE_LABEL, managed_namespace, pi, with_kueue

pytestmark = pytest.mark.timeout(600)
POLICY = """
rules:
  worker-count: {action: "off"}
  compliance: {action: deny, markers: {regulated: "yes"}, storageClasses: [encrypted]}
injections:
  kueue-queue: {required: deny}
  labels: {pods: {team: a}, required: deny}
"""
LACKS = (
    f'metadata.labels[{QUEUE_LABEL}]: the injection "kueue-queue" is required and not in the job. Set it to training.'
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_kueue(tmp_path_factory.mktemp("attack-queues"), policy=POLICY) as running:
        yield running


@pytest.fixture(scope="module")
def managed(cluster: Cluster) -> str:
    return managed_namespace(cluster)


DENIED = "validate.mpijob.training.openshift.io/denied"
EVASIONS: dict[str, dict[str, Any]] = {
    "an empty annotation": {"annotations": {ASK: ""}},
    "an empty label": {"labels": {QUEUE_LABEL: ""}},
}


@pytest.mark.parametrize("evasion", list(EVASIONS))
def test_a_new_job_is_in_a_queue(cluster: Cluster, managed: str, evasion: str) -> None:
    """Kueue rejects an empty label too, and the API server shows one of both reasons, so the audit log counts."""
    name = f"evades-{list(EVASIONS).index(evasion)}"
    said = cluster.attempt("create", stdin=pi(managed, name, **EVASIONS[evasion]))
    events = cluster.wait_for("the audit event", lambda: cluster.audit_events(name))
    denied = [event.get("annotations", {}).get(DENIED) for event in events]
    assert denied == ["required-injection"], said
    assert "created" not in said


def test_a_queue_of_volcano_where_it_is_not_installed_is_no_way_around_the_usual_queue(
    cluster: Cluster, managed: str
) -> None:
    job = pi(managed, "volcano", annotations={"scheduling.volcano.sh/queue-name": "x"})
    said = cluster.attempt("create", stdin=job)
    assert 'in queue training: there is no queue "x"' in said, said
    assert cluster.get("mpijob", "volcano", "-n", managed)["metadata"]["labels"][QUEUE_LABEL] == "training"


def test_a_job_of_another_cluster_is_in_a_queue_when_it_comes_here(cluster: Cluster, managed: str) -> None:
    away = pi(managed, "away")
    away["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    cluster.kubectl("create", "-f", "-", stdin=away)
    patch = json.dumps({"spec": {"runPolicy": {"managedBy": "kubeflow.org/mpi-operator"}}})
    said = cluster.attempt("patch", "mpijob", "away", "-n", managed, "--type=merge", "-p", patch)
    assert LACKS in said, said


def test_an_update_does_not_empty_the_label_of_a_job_that_waits(cluster: Cluster, managed: str) -> None:
    waiting = pi(managed, "waits", cpu=100)
    cluster.kubectl("create", "-f", "-", stdin=waiting)
    for value in ("", None):
        patch = json.dumps({"metadata": {"labels": {QUEUE_LABEL: value}}})
        said = cluster.attempt("patch", "mpijob", "waits", "-n", managed, "--type=merge", "-p", patch)
        assert "mpijob.kubeflow.org/waits patched" in said
        assert cluster.get("mpijob", "waits", "-n", managed)["metadata"]["labels"][QUEUE_LABEL] == "training"


STARTS = {
    "suspended": ({"suspend": True}, {"suspend": False}),
    "away": ({"managedBy": "kueue.x-k8s.io/multikueue"}, {"managedBy": "kubeflow.org/mpi-operator"}),
}


@pytest.mark.parametrize("waits", list(STARTS))
def test_a_claim_that_is_replaced_while_the_job_has_no_pods_is_seen(
    cluster: Cluster, namespace: str, waits: str
) -> None:
    before, starts = STARTS[waits]

    def claim(storage_class: str) -> dict[str, Any]:
        spec = {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
        }
        metadata = {"name": "data", "namespace": namespace}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}

    cluster.kubectl("create", "-f", "-", stdin=claim("encrypted"))
    job = pi(namespace, "regulated", labels={"regulated": "yes"})
    job["spec"]["runPolicy"] |= before
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    said = cluster.wait_for(
        "the claim to be known",
        lambda: (text := cluster.attempt("create", stdin=job)) and ("created" in text or None) and text,
    )
    assert "created" in said
    cluster.kubectl("delete", "pvc", "data", "-n", namespace, "--wait=false")
    cluster.attempt("patch", "pvc", "data", "-n", namespace, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    cluster.kubectl("create", "-f", "-", stdin=claim("plain"))
    patch = ("patch", "mpijob", "regulated", "-n", namespace, "--type=merge", "--dry-run=server", "-p")
    start = json.dumps({"spec": {"runPolicy": starts}})
    cluster.wait_for("the start to be rejected", lambda: "[compliance]" in cluster.attempt(*patch, start) or None)


def test_workers_that_come_later_are_judged_as_new(cluster: Cluster, namespace: str) -> None:
    job = pi(namespace, "grows")
    workers = job["spec"]["mpiReplicaSpecs"].pop("Worker")
    job["spec"]["runPolicy"]["suspend"] = True
    cluster.kubectl("create", "-f", "-", stdin=job)
    patch = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": workers}}})
    cluster.kubectl("patch", "mpijob", "grows", "-n", namespace, "--type=merge", "-p", patch)
    template = cluster.get("mpijob", "grows", "-n", namespace)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    assert template["metadata"]["labels"]["team"] == "a"
