"""A TrainJob reserves resources of a ResourceQuota. Its existing pods are not counted twice."""

from typing import Any

import msgspec
import pytest

from tests.support import trainer
from tests.support.quota_objects import quota
from tests.support.trainer import Runtimes, runtime, train_job
from webhook.api import quantity
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.quota_scopes import ObjectTraits
from webhook.cluster.resource import Resource
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS, LedgerEntry, Reservations
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import UNKNOWN
from webhook.parts.trainer.quota import charges
from webhook.parts.trainer.resources import TRAIN_JOB_PODS, TRAIN_JOBS, TrainJobPod, TrainJobRecord

GPUS = "requests.nvidia.com/gpu"
FOUR_EACH = {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}


class Team(Runtimes):
    """The namespace `team` with a quota, and caches of all relevant objects."""

    def __init__(self, *, hard: dict[str, Any], used: dict[str, Any] | None = None) -> None:
        super().__init__(runtime())
        limits = msgspec.json.encode(quota(hard, used, namespace="team"))
        self.cached: dict[Resource[Any, Any], Any] = {
            RESOURCE_QUOTAS: {("team", "q"): RESOURCE_QUOTAS.project(limits)},
            MPI_JOBS: {},
            PODS: {},
            TRAIN_JOB_PODS: {},
            RESERVATIONS: {},
        }
        self.stored: dict[str, TrainJobRecord] = {}

    def reserve(self, *decisions: Any) -> None:
        entries = tuple(LedgerEntry(each.reservation, 0) for each in decisions)
        self.cached[RESERVATIONS] = {("own", "quota-team"): Reservations("team", "quota-team", "1", entries)}

    def run(self, name: str, **pods: int) -> None:
        """Add pods of the job `name`. `pods` has their number for each replicated job."""
        for replicated_job, count in pods.items():
            for index in range(count):
                pod = TrainJobPod("team", name, replicated_job)
                self.cached[TRAIN_JOB_PODS]["team", f"{name}-{replicated_job}-{index}"] = pod

    def within(self, resource: Any, namespace: str) -> Any:
        return self.cached.get(resource, UNKNOWN)

    def get(self, resource: Any, key: Any) -> Any:
        if resource is TRAIN_JOBS and key[1] in self.stored:
            return self.stored[key[1]]
        return super().get(resource, key)


def decide(view: Team, name: str, *, old: Any = None, status: Any = None, **changes: Any) -> Any:
    manifest = train_job(**FOUR_EACH) | ({} if status is None else {"status": status})
    manifest["metadata"] |= {"name": name, "uid": f"uid-{name}"}
    before = None if old is None else {**manifest, "spec": manifest["spec"] | old}
    manifest["spec"] |= changes
    return trainer.decide(manifest, view=view, old=before)


def test_reservation_of_a_train_job_has_the_kind_in_its_name() -> None:
    reservation = decide(Team(hard={GPUS: 8, "count/jobs.batch": 9}), "llama").reservation

    assert (reservation.uid, reservation.name, reservation.new) == ("uid-llama", "TrainJob/llama", True)
    assert [(pods.role, pods.count) for pods in reservation.pods] == [(LAUNCHER, 1), (WORKER, 1)]
    assert [charge.usage[GPUS] for pods in reservation.pods for charge in pods.charges] == [4 * quantity.NANO] * 2
    assert [charge.usage for charge in reservation.objects] == [{"count/jobs.batch": 2 * quantity.NANO}]


def test_quota_on_mpi_jobs_does_not_apply_to_train_jobs() -> None:
    assert decide(Team(hard={"count/mpijobs.kubeflow.org": 0}), "llama").allowed
    assert not decide(Team(hard={"count/trainjobs.trainer.kubeflow.org": 0}), "llama").allowed


def test_second_job_is_rejected_if_the_quota_is_reserved_for_the_first() -> None:
    view = Team(hard={GPUS: 8})
    first = decide(view, "first")
    view.reserve(first)

    assert first.allowed
    assert [finding.rule for finding in decide(view, "second").denied] == ["resource-quota"]
    assert decide(view, "first").allowed, "the request for the first job may be repeated"


@pytest.mark.parametrize(
    ("pods", "used", "fits"),
    [({}, 0, True), ({"node": 1}, 4, True), ({"node": 1, "launcher": 1}, 8, True), ({"node": 1}, 8, False)],
)
def test_existing_pod_is_counted_once(pods: dict[str, int], used: int, fits: bool) -> None:
    view = Team(hard={GPUS: 16}, used={GPUS: used})
    view.reserve(decide(view, "first"))
    view.run("first", **pods)

    assert decide(view, "second").allowed is fits


def test_objects_of_a_stored_job_are_counted_only_in_the_usage_of_the_quota() -> None:
    view = Team(hard={"count/jobs.batch": 4}, used={"count/jobs.batch": 2})
    view.reserve(decide(view, "first"))

    assert not decide(view, "second").allowed
    view.stored["first"] = TrainJobRecord("team", "first", "uid-first")
    assert decide(view, "second").allowed


def test_reservation_ends_with_the_job() -> None:
    view = Team(hard={GPUS: 8})
    view.reserve(decide(view, "first"))

    view.stored["first"] = TrainJobRecord("team", "first", "uid-first", over=True)
    assert decide(view, "second").allowed
    view.stored["first"] = TrainJobRecord("team", "first", "uid-of-an-earlier-job", over=True)
    assert not decide(view, "second").allowed


def test_reservation_is_ignored_if_the_pods_are_unknown() -> None:
    view = Team(hard={GPUS: 8})
    view.reserve(decide(view, "first"))
    del view.cached[TRAIN_JOB_PODS]

    assert decide(view, "second").allowed


def test_new_job_with_the_name_of_an_existing_job_reserves_nothing() -> None:
    view = Team(hard={GPUS: 8})
    view.stored["first"] = TrainJobRecord("team", "first", "uid-of-an-earlier-job")

    assert decide(view, "first").reservation is None


def test_resumed_job_reserves_quota_for_its_missing_pods() -> None:
    view = Team(hard={GPUS: 8}, used={GPUS: 4})

    assert not decide(view, "first", old={"suspend": True}, suspend=False).allowed
    view.run("first", node=1)
    resumed = decide(view, "first", old={"suspend": True}, suspend=False)
    assert resumed.allowed
    assert not resumed.reservation.new
    assert decide(view, "first", suspend=True).reservation is None


@pytest.mark.parametrize(
    ("condition", "status", "reserved"),
    [
        ("Complete", "True", False),
        ("Failed", "False", True),
        ("Suspended", "True", True),
    ],
)
def test_ended_job_reserves_no_quota(condition: str, status: str, reserved: bool) -> None:
    resumed = {"old": {"suspend": True}, "suspend": False}
    resumed["status"] = {"conditions": [{"type": condition, "status": status}]}

    assert (decide(Team(hard={GPUS: 8}), "first", **resumed).reservation is not None) is reserved
    assert decide(Team(hard={GPUS: 4}), "first", **resumed).allowed is not reserved


def test_all_objects_of_a_train_job_count_against_quotas() -> None:
    [charge] = charges(2)
    assert charge.traits == ObjectTraits()
    assert {name: amount // quantity.NANO for name, amount in charge.usage.items()} == {
        "count/trainjobs.trainer.kubeflow.org": 1,
        "count/jobsets.jobset.x-k8s.io": 1,
        "count/jobs.batch": 2,
        **{
            name: number
            for kind, number in (("services", 1), ("configmaps", 2), ("secrets", 1))
            for name in (kind, f"count/{kind}")
        },
    }
