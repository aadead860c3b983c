from typing import Any

import pytest

from tests.support.injecting import Example, inject, mpijob, mutate, policy_of
from tests.support.kueue_objects import cluster_queue, config, local_queue
from tests.support.volcano_objects import Json, namespace, queue
from webhook.cluster.snapshot import Snapshot

ID = "volcano-queue"
PATH = "/spec/runPolicy"
USUAL = [namespace("team", "research"), queue("research"), queue("other")]
EXAMPLE = Example({"enabled": True}, job=mpijob(), view=Snapshot(USUAL))
ADDED = {PATH: {"schedulingPolicy": {"queue": "research"}}}
TOLD = ["put into Volcano's queue research"]
KEY = "scheduling.volcano.sh/queue-name"


def injected(job: Json, *objects: Json, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    return inject(ID, job, view=Snapshot(objects), **settings)


def test_the_queue_of_the_namespace() -> None:
    assert injected(mpijob(), *USUAL) == (ADDED, TOLD)
    assert injected(mpijob(), *USUAL, queue="other") == (ADDED, TOLD)


def test_the_queue_of_the_policy() -> None:
    objects = [namespace("team"), *USUAL[1:]]
    assert injected(mpijob(), *objects) == ({}, [])
    assert injected(mpijob(), *objects, queue="research") == (ADDED, TOLD)


def test_it_is_off() -> None:
    assert ID not in mutate(mpijob(), view=Snapshot(USUAL)).authors


@pytest.mark.parametrize("closed", ["Closed", ""])
def test_queue_is_injected_in_any_state(closed: str) -> None:
    """In a different queue the job could exceed the limits of its namespace. The rule reports the problem."""
    assert injected(mpijob(), USUAL[0], queue("research", state=closed)) == (ADDED, TOLD)


def test_other_fields_of_the_policy_stay() -> None:
    job = mpijob(run_policy={"schedulingPolicy": {"minAvailable": 2, "queue": ""}})
    assert injected(job, *USUAL) == ({}, []) or injected(job, *USUAL)[0] == {
        PATH + "/schedulingPolicy/queue": "research"
    }
    job = mpijob(run_policy={"schedulingPolicy": {"minAvailable": 2}})
    assert injected(job, *USUAL)[0] == {PATH + "/schedulingPolicy/queue": "research"}


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(mpijob(run_policy={"schedulingPolicy": {"queue": "other"}}), id="its own"),
        pytest.param(mpijob(metadata={"annotations": {KEY: "other"}}), id="by annotation"),
        pytest.param(mpijob(metadata={"labels": {"kueue.x-k8s.io/queue-name": "k"}}), id="in a queue of Kueue's"),
        pytest.param(mpijob(run_policy={"managedBy": "kueue.x-k8s.io/multikueue"}), id="elsewhere"),
    ],
)
def test_left_alone(job: Json) -> None:
    assert injected(job, *USUAL) == ({}, [])


def test_kueue_takes_it_first() -> None:
    """A job that `kueue-queue` has put into a Kueue queue gets no Volcano queue."""
    objects = [
        {**USUAL[0], "metadata": {**USUAL[0]["metadata"], "labels": {}}},
        *USUAL[1:],
        config(),
        cluster_queue("gpus"),
        local_queue("train", "gpus", namespace="team"),
    ]
    decision = mutate(mpijob(), policy_of({ID: {"enabled": True}}), view=Snapshot(objects))
    assert "kueue-queue" in decision.authors
    assert ID not in decision.authors


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="nothing known"),
        pytest.param(USUAL[:1], id="queues unknown"),
        pytest.param(USUAL[1:], id="namespace unknown"),
    ],
)
def test_what_is_not_known(objects: list[Json]) -> None:
    assert injected(mpijob(), *objects) == ({}, [])


@pytest.mark.parametrize("name", ["gone", "No Name"])
def test_a_queue_that_does_not_exist(name: str) -> None:
    told = [f'not in queue "{name}" of the namespace, which does not exist']
    assert injected(mpijob(), namespace("team", name), queue("other")) == ({}, told)
