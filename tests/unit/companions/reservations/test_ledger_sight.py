"""What a replica has not heard of yet: jobs behind a stalled watch, pods, and quotas that count them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.ledger_world import JOBS, World, fits, record
from tests.support.quota_objects import quota
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.client.paging import SLICE_OBJECTS
from webhook.cluster.overlay import Overlay
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.pods import JOB_NAME, PODS
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import UNKNOWN, ClusterView
from webhook.companions.reservations.judging import DOUBTS
from webhook.companions.reservations.sight import SILENCE
from webhook.rules import Violation

pytestmark = pytest.mark.usefixtures("no_pause")


def job(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"}, "spec": {"mpiReplicaSpecs": {}}}


@pytest.mark.parametrize(
    ("silent", "cached", "counted", "seen"),
    [
        (SILENCE - 1, ["x"], 2, None),
        (SILENCE, [], 2, {"a", "b"}),
        (SILENCE, ["a"], 2, {"a", "b"}),
        (SILENCE, ["a", "x"], 2, {"a", "b"}),
        (SILENCE, ["a", "b"], 2, None),
        (SILENCE, ["a", "x"], None, {"a", "b"}),
    ],
    ids=["heard just now", "stalled", "behind", "one came and one went", "the same ones", "nobody says how many"],
)
async def test_a_watch_that_may_have_stalled_is_not_relied_on(
    silent: float, cached: list[str], counted: int | None, seen: set[str] | None
) -> None:
    world = stalled(silent, cached, counted)
    found: list[Any] = []
    await world.ledger.verdict("team", decide=looking(found), first=fits(), writes=True, seconds=5)
    assert found[-1] == seen


async def test_what_was_found_to_be_the_same_is_not_listed_for_each_job() -> None:
    world = stalled(SILENCE, ["a", "b"], 2)
    for _ in range(3):
        await world.ledger.verdict("team", decide=looking([]), first=fits(), writes=True, seconds=5)
    assert [each.partition("?")[0] for each in world.api.listed if "mpijobs" in each] == [JOBS]


async def test_of_thousands_of_jobs_only_the_number_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """To list them takes longer than a job can wait."""
    monkeypatch.setattr("webhook.companions.reservations.sight.MOST_COMPARED", 1)
    world = stalled(SILENCE, ["a", "x"], 2)
    found: list[Any] = []
    await world.ledger.verdict("team", decide=looking(found), first=fits(), writes=True, seconds=5)
    assert found[-1] is None


def stalled(silent: float, cached: list[str], counted: int | None) -> World:
    """A watch that was silent for so long and has seen `cached`; there are a and b."""
    world = World()
    world.view.silent = silent
    read: Any = MPI_JOBS.project
    world.view.jobs = {("team", name): read(json.dumps(job(name)).encode()) for name in cached}
    world.view.jobs["other", "x"] = record("x")
    world.api.objects["mpijobs"] = [job("a"), job("b")]
    world.api.counted = counted
    return world


def looking(found: list[Any]) -> Callable[[ClusterView], Decision]:
    """Adds the names of the jobs in the view, None where they are those of the cache."""

    def decide(view: ClusterView) -> Decision:
        assert isinstance(view, Overlay)
        jobs = view.within(MPI_JOBS, "team")
        found.append({name for _, name in jobs} if MPI_JOBS in view.known and jobs is not UNKNOWN else None)
        return Decision(name="c")

    return decide


async def test_thousands_of_pods_are_read_in_pages_and_others_go_on() -> None:
    """2,500 pods in one list took four seconds of the loop, and the job got no verdict."""
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
    assert "limit=500" in world.api.listed[-2]
    assert turns > len(pods) / SLICE_OBJECTS


async def test_a_job_is_not_judged_again_and_again_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of pods each time takes long, and the one who waits should hear of the quota."""
    monkeypatch.setattr("webhook.companions.reservations.judging.LONGEST_DOUBT", 0)
    world = World()
    await world.submit("a", "b", "c")
    world.api.listed.clear()
    assert await world.submit("d") == []
    assert len([each for each in world.api.listed if "/resourcequotas" in each]) == DOUBTS
    assert len([each for each in world.api.listed if "/pods" in each]) == 1


@pytest.mark.parametrize(("until_pods", "admitted", "share"), [(12, True, 0.8), (10**9, False, 0.01)])
async def test_nobody_is_refused_for_pods_that_count_twice(
    until_pods: int, admitted: bool, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time a pod comes between the look at pods and the look at quotas, which count it already."""
    monkeypatch.setattr("webhook.companions.reservations.ledger.SHARE", share)
    world = World()
    world.view.listeners[PODS](("team", "p"), None, None)
    looks = 0

    def decide(view: ClusterView) -> Decision:
        nonlocal looks
        looks += 1
        newest = len(view.within(PODS, "team")) == len(world.api.objects["pods"])  # type: ignore[arg-type]
        fits = newest if looks < until_pods else admitted
        return Decision(name="a", denied=[] if fits else [Finding("resource-quota", Violation("", "full", fix=""))])

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
    assert looks >= DOUBTS


GPUS = {"requests.nvidia.com/gpu": 8}


@pytest.mark.parametrize("heard", [True, False])
async def test_the_first_pod_that_nobody_has_seen_yet_is_not_counted_twice(heard: bool) -> None:
    """The quota counts it, whether this replica has heard of that or not, and nothing is reserved any more."""
    world = World()
    used = quota(GPUS, {"requests.nvidia.com/gpu": 1}, namespace="team")
    world.api.objects["resourcequotas"] = [used]
    if heard:
        world.view.quotas = {("team", "q"): RESOURCE_QUOTAS.project(json.dumps(used).encode())}
        world.view.listeners[RESOURCE_QUOTAS](("team", "q"), None, None)
    verdicts = [Decision(name="a", denied=[Finding("resource-quota", Violation("", "full", fix=""))]), fits("a")]

    def decide(_: ClusterView) -> Decision:
        return verdicts[0] if len(verdicts) == 1 else verdicts.pop(0)

    decision = await world.ledger.verdict("team", decide=decide, first=fits("a"), writes=True, seconds=5)
    assert decision.allowed


async def test_where_nothing_moves_a_refusal_does_not_wait() -> None:
    world = World()
    full = Decision(name="a", denied=[Finding("resource-quota", Violation("", "full", fix=""))])
    looks: list[ClusterView] = []

    def decide(view: ClusterView) -> Decision:
        looks.append(view)
        return full

    assert (await world.ledger.verdict("team", decide=decide, first=full, writes=True, seconds=5)).denied
    assert len(looks) == 1
