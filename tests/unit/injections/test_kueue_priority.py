from typing import Any

import pytest

from tests.support.injecting import Example, inject, mpijob
from tests.support.kueue_objects import Json, config, namespace, workload_priority_class
from webhook.cluster.snapshot import Snapshot

ID = "kueue-priority"
LABEL = "kueue.x-k8s.io/priority-class"
USUAL = [config(), namespace("team"), workload_priority_class("high")]
EXAMPLE = Example({"priorityClass": "high"}, view=Snapshot(USUAL))
OTHERS = "managedJobsNamespaceSelector: {matchLabels: {kueue: 'yes'}}\n"


def injected(job: Json, *objects: Json, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    return inject(ID, job, view=Snapshot(objects), **settings)


def test_nothing_happens_without_a_class() -> None:
    assert injected(mpijob(), *USUAL) == ({}, [])


def test_a_job_gets_the_class_of_the_policy() -> None:
    added = {"/metadata/labels": {LABEL: "high"}}
    told = [f"added {LABEL}=high, the place in the queue"]
    assert injected(mpijob(), *USUAL, priorityClass="high") == (added, told)


@pytest.mark.parametrize("own", ["low", "high", ""])
def test_the_users_class_stays(own: str) -> None:
    assert injected(mpijob(metadata={"labels": {LABEL: own}}), *USUAL, priorityClass="high") == ({}, [])


def test_a_class_that_does_not_exist() -> None:
    told = ['WorkloadPriorityClass "gone" of the policy does not exist']
    assert injected(mpijob(), *USUAL, priorityClass="gone") == ({}, told)


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="nothing known"),
        pytest.param(USUAL[:2], id="classes unknown"),
        pytest.param(USUAL[1:], id="no configuration"),
        pytest.param([USUAL[0], USUAL[2]], id="namespace unknown"),
        pytest.param([config(OTHERS), *USUAL[1:]], id="not managed"),
    ],
)
def test_no_note_where_kueue_may_not_manage_the_job(objects: list[Json]) -> None:
    assert injected(mpijob(), *objects, priorityClass="high") == ({}, [])


def test_a_job_of_another_controller() -> None:
    job = mpijob(run_policy={"managedBy": "kueue.x-k8s.io/multikueue"})
    assert injected(job, *USUAL, priorityClass="high") == ({}, [])
