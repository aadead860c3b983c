from typing import Any

import pytest

from tests.support.injecting import Example, inject, mpijob, mutate, policy_of
from tests.support.kueue_objects import cluster_queue, config, local_queue
from tests.support.volcano_objects import Json, namespace, queue
from webhook.cluster.snapshot import Snapshot

ID = "volcano-queue"
PATH = "/spec/runPolicy"
OBJECTS = [namespace("team", "research"), queue("research"), queue("other")]
EXAMPLE = Example({"enabled": True}, job=mpijob(), view=Snapshot(OBJECTS))
ADDED = {PATH: {"schedulingPolicy": {"queue": "research"}}}
NOTES = ["put into Volcano's queue research"]
KEY = "scheduling.volcano.sh/queue-name"


def injected(job: Json, *objects: Json, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    return inject(ID, job, view=Snapshot(objects), **settings)


def test_queue_of_the_namespace_is_injected() -> None:
    assert injected(mpijob(), *OBJECTS) == (ADDED, NOTES)
    assert injected(mpijob(), *OBJECTS, queue="other") == (ADDED, NOTES)


def test_queue_of_the_policy_is_injected() -> None:
    objects = [namespace("team"), *OBJECTS[1:]]
    assert injected(mpijob(), *objects) == ({}, [])
    assert injected(mpijob(), *objects, queue="research") == (ADDED, NOTES)


def test_injection_is_off_by_default() -> None:
    assert ID not in mutate(mpijob(), view=Snapshot(OBJECTS)).authors


def test_closed_queue_is_injected() -> None:
    """The rule `volcano-queue` reports a closed queue. Another queue might not have the namespace's limits."""
    assert injected(mpijob(), OBJECTS[0], queue("research", state="Closed")) == (ADDED, NOTES)


def test_other_fields_of_the_scheduling_policy_stay() -> None:
    job = mpijob(run_policy={"schedulingPolicy": {"minAvailable": 2}})
    assert injected(job, *OBJECTS)[0] == {PATH + "/schedulingPolicy/queue": "research"}


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(mpijob(run_policy={"schedulingPolicy": {"queue": "other"}}), id="queue in the field"),
        pytest.param(mpijob(metadata={"annotations": {KEY: "other"}}), id="queue in the annotation"),
        pytest.param(mpijob(metadata={"labels": {"kueue.x-k8s.io/queue-name": "k"}}), id="in a queue of Kueue"),
        pytest.param(mpijob(run_policy={"managedBy": "kueue.x-k8s.io/multikueue"}), id="another controller"),
    ],
)
def test_job_with_a_queue_or_another_controller_stays_unchanged(job: Json) -> None:
    assert injected(job, *OBJECTS) == ({}, [])


def test_job_with_an_injected_kueue_queue_gets_no_volcano_queue() -> None:
    """The injection `kueue-queue` runs earlier."""
    objects = [
        {**OBJECTS[0], "metadata": {**OBJECTS[0]["metadata"], "labels": {}}},
        *OBJECTS[1:],
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
        pytest.param([], id="everything unknown"),
        pytest.param(OBJECTS[:1], id="queues unknown"),
        pytest.param(OBJECTS[1:], id="namespace unknown"),
    ],
)
def test_nothing_is_injected_if_queues_or_namespace_are_unknown(objects: list[Json]) -> None:
    assert injected(mpijob(), *objects) == ({}, [])


@pytest.mark.parametrize("name", ["gone", "No Name"])
def test_missing_queue_is_reported(name: str) -> None:
    notes = [f'not in queue "{name}" of the namespace, which does not exist']
    assert injected(mpijob(), namespace("team", name), queue("other")) == ({}, notes)
