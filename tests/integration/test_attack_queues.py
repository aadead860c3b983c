"""A tenant cannot evade a required queue of the real Kueue. Updates cannot add values that a new job may not have."""

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
def test_new_job_that_evades_the_required_queue_is_rejected(cluster: Cluster, managed: str, evasion: str) -> None:
    """Kueue rejects an empty label too, and kubectl shows only one rejection, so the test reads the audit log."""
    name = f"evades-{list(EVASIONS).index(evasion)}"
    output = cluster.attempt("create", stdin=pi(managed, name, **EVASIONS[evasion]))
    events = cluster.wait_for("the audit event", lambda: cluster.audit_events(name))
    denied = [event.get("annotations", {}).get(DENIED) for event in events]
    assert denied == ["required-injection"], output
    assert "created" not in output


def test_job_for_a_volcano_queue_gets_the_usual_queue_if_volcano_is_missing(cluster: Cluster, managed: str) -> None:
    job = pi(managed, "volcano", annotations={"scheduling.volcano.sh/queue-name": "x"})
    output = cluster.attempt("create", stdin=job)
    assert 'in queue training: there is no queue "x"' in output, output
    assert cluster.get("mpijob", "volcano", "-n", managed)["metadata"]["labels"][QUEUE_LABEL] == "training"


def test_job_managed_elsewhere_needs_a_queue_when_this_cluster_takes_over(cluster: Cluster, managed: str) -> None:
    away = pi(managed, "away")
    away["spec"]["runPolicy"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    cluster.kubectl("create", "-f", "-", stdin=away)
    patch = json.dumps({"spec": {"runPolicy": {"managedBy": "kubeflow.org/mpi-operator"}}})
    output = cluster.attempt("patch", "mpijob", "away", "-n", managed, "--type=merge", "-p", patch)
    assert LACKS in output, output


def test_update_does_not_remove_the_queue_label_of_a_waiting_job(cluster: Cluster, managed: str) -> None:
    waiting = pi(managed, "waits", cpu=100)
    cluster.kubectl("create", "-f", "-", stdin=waiting)
    for value in ("", None):
        patch = json.dumps({"metadata": {"labels": {QUEUE_LABEL: value}}})
        output = cluster.attempt("patch", "mpijob", "waits", "-n", managed, "--type=merge", "-p", patch)
        assert "mpijob.kubeflow.org/waits patched" in output
        assert cluster.get("mpijob", "waits", "-n", managed)["metadata"]["labels"][QUEUE_LABEL] == "training"


STARTS = {
    "suspended": ({"suspend": True}, {"suspend": False}),
    "away": ({"managedBy": "kueue.x-k8s.io/multikueue"}, {"managedBy": "kubeflow.org/mpi-operator"}),
}


@pytest.mark.parametrize("waits", list(STARTS))
def test_replaced_claim_of_a_job_without_pods_is_checked_when_the_job_starts(
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
    output = cluster.wait_for(
        "the service to see the claim",
        lambda: (text := cluster.attempt("create", stdin=job)) and ("created" in text or None) and text,
    )
    assert "created" in output
    cluster.kubectl("delete", "pvc", "data", "-n", namespace, "--wait=false")
    cluster.attempt("patch", "pvc", "data", "-n", namespace, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    cluster.kubectl("create", "-f", "-", stdin=claim("plain"))
    patch = ("patch", "mpijob", "regulated", "-n", namespace, "--type=merge", "--dry-run=server", "-p")
    start = json.dumps({"spec": {"runPolicy": starts}})
    cluster.wait_for("the start to be rejected", lambda: "[compliance]" in cluster.attempt(*patch, start) or None)


def test_workers_added_by_an_update_get_injections(cluster: Cluster, namespace: str) -> None:
    job = pi(namespace, "grows")
    workers = job["spec"]["mpiReplicaSpecs"].pop("Worker")
    job["spec"]["runPolicy"]["suspend"] = True
    cluster.kubectl("create", "-f", "-", stdin=job)
    patch = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": workers}}})
    cluster.kubectl("patch", "mpijob", "grows", "-n", namespace, "--type=merge", "-p", patch)
    template = cluster.get("mpijob", "grows", "-n", namespace)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    assert template["metadata"]["labels"]["team"] == "a"
