"""An assessment compares a job with the ResourceQuotas of its namespace. An admitted job gets a reservation.

Promised amounts are the amounts that the other jobs of the namespace will still use.
"""

from typing import Any

import pytest

from tests.support.any_job import Json
from tests.support.jobs import changed
from tests.support.quota_objects import cluster, limit_range, pods, quota
from tests.support.rule_checks import defaulted
from webhook.api import quantity
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.quota_scopes import PodTraits
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NotingView
from webhook.kit.context import Context
from webhook.predict.quota.assessment import Assessment, assess, reservation_of

SUSPENDED = {"spec.runPolicy.suspend": True}
GPUS = quota({"requests.nvidia.com/gpu": 32})


def context(view: ClusterView, **fields: Any) -> Context:
    return Context(namespace="team-a", view=view, **fields)


def reservation(changes: Json, view: Snapshot, **fields: Any) -> Any:
    job, ctx = defaulted(changed({"metadata.uid": "u1", **changes})), context(view, **fields)
    return reservation_of(job, ctx)


def assessed(changes: Json, view: ClusterView, **fields: Any) -> Assessment:
    assessment = assess(defaulted(changed(changes)), context(view, **fields))
    assert assessment is not None
    return assessment


def test_reservation_has_all_pods_of_the_job() -> None:
    reserved = reservation({}, cluster(GPUS, *pods("u1", 4)))
    assert (reserved.uid, reserved.name) == ("u1", "train")
    assert [(pods.role, pods.count) for pods in reserved.pods] == [(LAUNCHER, 1), (WORKER, 4)]
    [charge] = reserved.pods[1].charges
    assert charge.usage["requests.nvidia.com/gpu"] == 2 * quantity.NANO
    assert charge.traits == PodTraits()
    assert reserved.objects == (), "objects without a quota are left out"


def test_train_jobs_are_not_read_without_a_reservation_for_a_train_job() -> None:
    view = NotingView(cluster(GPUS, *pods("u1", 4)))
    assert assessed({}, view).promised.keys() == {"q"}
    assert view.unknown.isdisjoint({"train-job-pods", "trainjobs"})


@pytest.mark.parametrize(
    ("changes", "quotas"),
    [
        ({}, []),
        ({}, [quota({"requests.nvidia.com/gpu": 32}, namespace="team-b")]),
        ({}, [quota({"requests.amd.com/gpu": 32})]),
        ({}, [quota({"requests.nvidia.com/gpu": 32}, scopes=["Terminating"])]),
        ({"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, [GPUS]),
        (SUSPENDED, [GPUS]),
    ],
)
def test_nothing_is_reserved_without_a_matching_quota(changes: Json, quotas: list[Json]) -> None:
    assert reservation(changes, cluster(*quotas)) is None


def test_suspended_job_reserves_its_service_but_no_pods() -> None:
    reserved = reservation(SUSPENDED, cluster(quota({"services": 5})))
    assert reserved.pods == ()
    assert reserved.objects[0].usage["services"] == quantity.NANO
    assert reservation(SUSPENDED, cluster(quota({"services": 5})), operation="UPDATE") is None


def test_nothing_is_reserved_if_quotas_are_unknown() -> None:
    assert reservation({}, Snapshot([])) is None


def test_promised_amounts_of_other_jobs_include_defaults_and_overhead() -> None:
    bare = {"Worker.template.spec.containers.0.resources": {}, "Worker.template.spec.runtimeClassName": "kata"}
    other = changed(bare | {"metadata.name": "a", "metadata.uid": "a", "Worker.replicas": 3})
    kata = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}}
    kata |= {"overhead": {"podFixed": {"memory": "1Gi"}}}
    view = cluster(quota({"memory": "9Ti"}), limit_range(namespace="team-a", memory="2Gi"), kata, other)
    assert assessed({}, view).promised == {"q": {"memory": quantity.parse("10Gi")}}


class TestDeadJobs:
    """A dead job is stored, and the operator creates no pods for it."""

    DEAD = {"Worker.restartPolicy": "ExitCode"}  # noqa: RUF012

    def stored(self, **changes: Any) -> Json:
        return changed({"metadata.name": "old", "metadata.uid": "u0", **changes})

    def test_dead_job_has_no_promised_use(self) -> None:
        alive, dead = (assessed({}, cluster(GPUS, self.stored(**more))) for more in ({}, self.DEAD))
        assert [*alive.promised.values()] == [{"requests.nvidia.com/gpu": 8 * quantity.NANO}]
        assert [*dead.promised.values()] == [{}]

    def test_update_that_revives_a_job_is_assessed_as_a_whole(self) -> None:
        def before(**status: Any) -> Any:
            """The assessed use of the job before the update."""
            old = defaulted(changed({"metadata.uid": "u1", **self.DEAD, **status}))
            return assessed({"metadata.uid": "u1"}, cluster(GPUS), operation="UPDATE", old=old).before

        assert before() is None, "the dead job used no quota"
        assert before(status={"conditions": [{"type": "Created"}]}) is not None
