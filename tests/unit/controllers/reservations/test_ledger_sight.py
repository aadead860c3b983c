"""Objects that a replica has not seen yet: jobs while a watch is stalled, pods, and quotas that count these pods."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.ledger_world import World, fits, record
from tests.support.quota_objects import quota
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.client.limits import MAX_OBJECTS_AT_STRETCH
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.pods import JOB_NAME, PODS
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import UNKNOWN, ClusterView, Overlay
from webhook.controllers.reservations.limits import MAX_REJECTIONS, MAX_SILENCE_SECONDS
from webhook.rules import Violation

pytestmark = pytest.mark.usefixtures("no_pause")
FULL = Decision(name="a", denied=[Finding("resource-quota", Violation("", "full", fix=""))])


def job(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"}, "spec": {"mpiReplicaSpecs": {}}}


@pytest.mark.parametrize(
    ("silent", "cached", "seen"),
    [
        (MAX_SILENCE_SECONDS, ["x"], None),
        (MAX_SILENCE_SECONDS + 1, [], {"a", "b"}),
        (MAX_SILENCE_SECONDS + 1, ["a", "x"], {"a", "b"}),
    ],
    ids=["recent event", "stalled, empty cache", "stalled, outdated cache"],
)
async def test_jobs_are_listed_if_the_watch_may_have_stalled(
    silent: float, cached: list[str], seen: set[str] | None
) -> None:
    world = stalled(silent, cached)
    listed: list[Any] = []
    await world.ledger.verdict("team", decide=looking(listed), first=fits(), writes=True, seconds=5)
    assert listed[-1] == seen


async def test_too_many_jobs_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of too many jobs would take longer than a job can wait."""
    monkeypatch.setattr("webhook.controllers.reservations.limits.MAX_LISTED_JOBS", 1)
    world = stalled(MAX_SILENCE_SECONDS + 1, ["a", "x"])
    listed: list[Any] = []
    await world.ledger.verdict("team", decide=looking(listed), first=fits(), writes=True, seconds=5)
    assert listed[-1] is None


def stalled(silent: float, cached: list[str]) -> World:
    """A world whose watch had its last event `silent` seconds ago.

    The cache has the jobs `cached`, and the API server has the jobs `a` and `b`.
    """
    world = World()
    world.view.silent[MPI_JOBS] = silent
    read: Any = MPI_JOBS.project
    world.view.jobs = {("team", name): read(json.dumps(job(name)).encode()) for name in cached}
    world.view.jobs["other", "x"] = record("x")
    world.api.objects["mpijobs"] = [job("a"), job("b")]
    return world


def looking(listed: list[Any]) -> Callable[[ClusterView], Decision]:
    """A function that decides. It appends the jobs' names to `listed`, or None if the ledger did not list them."""

    def decide(view: ClusterView) -> Decision:
        assert isinstance(view, Overlay)
        jobs = view.within(MPI_JOBS, "team")
        listed.append({name for _, name in jobs} if MPI_JOBS in view.replaced and jobs is not UNKNOWN else None)
        return Decision(name="c")

    return decide


async def test_thousands_of_pods_are_read_in_pages_without_blocking() -> None:
    """Formerly, 2,500 pods in one list blocked the event loop for four seconds, and the job got no verdict."""
    world = World()
    await world.submit("a", "b", "c")
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "a", "uid": "uid-a", "controller": True}
    metadata = {"namespace": "team", "labels": {JOB_NAME: "a"}, "ownerReferences": [owner]}
    pods = [{"metadata": {**metadata, "name": f"p{n}"}} for n in range(2_500)]
    world.api.objects["pods"] = pods
    submitted = asyncio.create_task(world.submit("d"))
    turns = 0
    while not submitted.done():
        turns += 1
        await asyncio.sleep(0)
    assert await submitted == []
    assert "limit=200" in world.api.listed[-1]
    assert turns > len(pods) / MAX_OBJECTS_AT_STRETCH


@pytest.mark.parametrize(("until_pods", "admitted", "looked"), [(12, True, 13), (10**9, False, 2 * MAX_REJECTIONS)])
async def test_job_is_not_rejected_because_of_pods_counted_twice(until_pods: int, admitted: bool, looked: int) -> None:
    """The ledger reads the pods, then the quotas, and repeats both reads if the job does not fit.

    In each repetition, a pod is created between the two reads, so only the quotas count this pod.
    """
    world = World()
    world.view.silent[PODS] = 0
    looks = 0

    def decide(view: ClusterView) -> Decision:
        nonlocal looks
        looks += 1
        newest = len(view.within(PODS, "team")) == len(world.api.objects["pods"])  # type: ignore[arg-type]
        fits = newest if looks < until_pods else admitted
        return Decision(name="a", denied=[] if fits else FULL.denied)

    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "a", "uid": "u", "controller": True}
    world.api.objects["pods"] = []

    def another(plural: str) -> None:
        if plural == "resourcequotas" and looks < until_pods:
            labels = {JOB_NAME: "a"}
            metadata = {"name": f"p{len(pods)}", "namespace": "team", "labels": labels, "ownerReferences": [owner]}
            pods.append({"metadata": metadata})

    pods = world.api.objects["pods"]
    world.api.before_list = another
    decision = await world.ledger.verdict("team", decide=decide, first=fits("a"), writes=True, seconds=60)
    assert decision.allowed == admitted
    assert looks == looked


GPUS = {"requests.nvidia.com/gpu": 8}


@pytest.mark.parametrize("heard", [True, False])
async def test_uncached_first_pod_is_not_counted_twice(heard: bool) -> None:
    """The quota already counts the job's first pod. If `heard`, the replica has seen this. No reservation exists."""
    world = World()
    used = quota(GPUS, {"requests.nvidia.com/gpu": 1}, namespace="team")
    world.api.objects["resourcequotas"] = [used]
    if heard:
        world.view.quotas = {("team", "q"): RESOURCE_QUOTAS.project(json.dumps(used).encode())}
        world.view.silent[RESOURCE_QUOTAS] = 0
    verdicts = iter([FULL, *[fits("a")] * 9])

    def decide(_: ClusterView) -> Decision:
        return next(verdicts)

    decision = await world.ledger.verdict("team", decide=decide, first=fits("a"), writes=True, seconds=5)
    assert decision.allowed


async def test_rejection_is_immediate_while_nothing_changes() -> None:
    world = World()
    looks: list[ClusterView] = []

    def decide(view: ClusterView) -> Decision:
        looks.append(view)
        return FULL

    assert (await world.ledger.verdict("team", decide=decide, first=FULL, writes=True, seconds=5)).denied
    assert len(looks) == 1
