"""A running job has a PodDisruptionBudget if the policy sets `budget`.

A budget is foreign if the job does not own it. The controller does not change foreign budgets.
"""

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.support.jobs import changed
from tests.support.kept_objects import KeptObjects
from tests.support.owned_objects import OwnerWorld
from webhook.parts.disruption_budgets.upkeep import BUDGETS, DisruptionBudgets

JOB = "/apis/kubeflow.org/v2beta1/namespaces/team-a/mpijobs/train"
BUDGET = "/apis/policy/v1/namespaces/team-a/poddisruptionbudgets/mpijob-train"
ON = "injections: {no-disruption: {budget: true}}"
OFF = "injections: {no-disruption: {enabled: true}}"
ENDED = {
    "status.conditions": [{"type": "Succeeded", "status": "True"}],
    "status.completionTime": "2026-01-01T00:00:00Z",
}
LABELS = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "train"}
PODS = 5  # a launcher and four workers


class World(OwnerWorld):
    async def store(self, changes: dict[str, Any] | None = None) -> dict[str, Any]:
        job = self.cluster.put(JOB, changed({"status": {}, **(changes or {})}))
        await self.settled()
        return job

    @property
    def pods(self) -> int | None:
        """The number of pods that the budget protects, or None without a budget."""
        budget = self.cluster.objects.get(BUDGET)
        return budget and budget["spec"]["minAvailable"]


def running(cluster: KeptObjects, policy: str = ON) -> AbstractAsyncContextManager[World]:
    return World(cluster, policy, DisruptionBudgets, BUDGETS).running()


async def test_budget_of_a_running_job_protects_all_pods(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        job = await world.store()
        assert cluster.objects[BUDGET]["spec"] == {
            "minAvailable": PODS,
            "selector": {"matchLabels": LABELS},
        }
        (owner,) = cluster.objects[BUDGET]["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (job["metadata"]["uid"], True)
        assert len(cluster.calls) == 1
        world.controller.resync()
        await world.settled()
        assert len(cluster.calls) == 1


@pytest.mark.parametrize(
    ("policy", "changes", "pods"),
    [
        (OFF, {}, None),
        (ON, {"spec.runPolicy.suspend": True}, None),
        (ON, ENDED, None),
        (ON, {"spec.runPolicy.managedBy": "kueue.x-k8s.io/multikueue"}, None),
        (f"namespaces: {{matchLabels: {{tier: iron}}}}\n{ON}", {}, None),
        (f"namespaces: {{matchLabels: {{tier: gold}}}}\n{ON}", {}, PODS),
    ],
)
async def test_budget_depends_on_the_policy_and_the_job(
    cluster: KeptObjects, policy: str, changes: dict[str, Any], pods: int | None
) -> None:
    async with running(cluster, policy) as world:
        await world.store(changes)
        assert world.pods == pods


@pytest.mark.parametrize(
    ("changes", "pods"), [(ENDED, 0), ({"spec.runPolicy.suspend": True}, 0), ({"Worker.replicas": 6}, 7)]
)
async def test_budget_follows_the_state_and_the_number_of_workers_of_the_job(
    cluster: KeptObjects, changes: dict[str, Any], pods: int
) -> None:
    async with running(cluster) as world:
        job = await world.store()
        await world.store({**changes, "metadata.uid": job["metadata"]["uid"]})
        assert world.pods == pods


async def test_budget_protects_no_pods_when_the_policy_no_longer_sets_it(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        await world.store()
        world.set_policy(OFF)
        await world.settled()
        assert world.pods == 0


async def test_changed_or_removed_budget_is_restored(cluster: KeptObjects) -> None:
    async with running(cluster) as world:
        await world.store()
        cluster.put(BUDGET, changed({"spec.minAvailable": 0}, cluster.objects[BUDGET]))
        await world.settled()
        assert world.pods == PODS
        cluster.remove(BUDGET)
        await world.settled()
        assert world.pods == PODS


async def test_foreign_budget_is_not_changed_and_causes_an_event(cluster: KeptObjects) -> None:
    cluster.put(BUDGET, {"metadata": {}, "spec": {"minAvailable": 1}})
    async with running(cluster) as world:
        await world.store()
        assert world.pods == 1
        assert world.events == ["PodDisruptionBudgetForeign"]
        problem = world.controller.reconciler.problem
        assert "PodDisruptionBudget team-a/mpijob-train does not belong to the job" in problem
