"""The pods that the operator will create for a job."""

from typing import Any

import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.limit_ranges import limit_range, shown
from tests.support.rule_checks import defaulted
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.kit.context import Context
from webhook.predict.job_pods import JobPods, job_pods

Json = dict[str, Any]

KATA = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "overhead": {"podFixed": {"cpu": "250m"}},
}
FREE = limit_range("free")  # it has no limits; with it, the view knows the LimitRanges
LAUNCHER_CLASS = "Launcher.template.spec.runtimeClassName"


def pods(changes: Json | None = None, *, view: ClusterView | None = None) -> tuple[JobPods, ...]:
    context = Context(namespace="team-a", view=view or Snapshot([FREE, KATA]))
    return job_pods(defaulted(changed(changes)), context)


def test_job_has_one_pod_of_the_launcher_and_the_pods_of_the_workers() -> None:
    launcher, worker = pods()
    assert (launcher.role, launcher.path, launcher.count) == ("Launcher", "spec.mpiReplicaSpecs[Launcher]", 1)
    assert (worker.role, worker.path, worker.count) == ("Worker", "spec.mpiReplicaSpecs[Worker]", 4)
    assert shown(launcher.requests) == shown(launcher.limits) == {"cpu": "1", "memory": "1Gi"}
    assert shown(worker.requests) == {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}
    assert launcher.certain
    assert worker.template.containers[0].name == "worker"


@pytest.mark.parametrize(
    ("changes", "roles"),
    [
        ({"Worker": REMOVE}, ["Launcher"]),
        ({"Worker.replicas": 0}, ["Launcher"]),
        ({"Launcher": REMOVE}, ["Worker"]),
        ({"spec.runPolicy.suspend": True}, ["Launcher", "Worker"]),
        ({"spec.runPolicy.managedBy": "kubeflow.org/mpi-operator"}, ["Launcher", "Worker"]),
        ({"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, []),
    ],
)
def test_role_without_pods_is_left_out(changes: Json, roles: list[str]) -> None:
    assert [group.role for group in pods(changes)] == roles


def test_defaults_of_a_limit_range_apply_to_containers_without_resources() -> None:
    limits = limit_range("a", {"type": "Container", "default": {"cpu": 3}, "defaultRequest": {"memory": "2Gi"}})
    elsewhere = {**limit_range("b", {"type": "Container", "default": {"cpu": 9}}), "metadata": {"name": "b"}}
    empty = {"Launcher.template.spec.containers.0.resources": REMOVE}
    launcher, worker = pods(empty, view=Snapshot([limits, elsewhere]))
    assert shown(launcher.requests) == {"cpu": "3", "memory": "2Gi"}
    assert shown(launcher.limits) == {"cpu": "3"}
    assert shown(worker.requests) == {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}
    assert launcher.certain


@pytest.mark.parametrize(
    ("name", "requests"),
    [("kata", "1250m"), ("gone", "1"), ("", "1")],
)
def test_overhead_of_the_runtime_class_is_added(name: str, requests: str) -> None:
    launcher, worker = pods({LAUNCHER_CLASS: name})
    assert (shown(launcher.requests)["cpu"], launcher.certain) == (requests, True)
    assert shown(worker.requests)["cpu"] == "16"


def test_pods_are_uncertain_if_limit_ranges_or_the_runtime_class_are_unknown() -> None:
    assert [group.certain for group in pods(view=NothingKnown())] == [False, False]
    launcher, worker = pods({LAUNCHER_CLASS: "kata"}, view=Snapshot([FREE]))
    assert (launcher.certain, worker.certain) == (False, True)


def test_smallest_default_of_several_limit_ranges_is_used() -> None:
    """Amounts are uncertain if they come from a default that differs between LimitRanges."""
    disputed = [limit_range(name, {"type": "Container", "default": {"cpu": cpu}}) for name, cpu in (("a", 3), ("b", 2))]
    launcher, worker = pods({"Launcher.template.spec.containers.0.resources": REMOVE}, view=Snapshot(disputed))
    assert (launcher.certain, launcher.disputed, shown(launcher.requests)) == (False, {"cpu"}, {"cpu": "2"})
    assert (worker.certain, worker.disputed) == (True, frozenset())
