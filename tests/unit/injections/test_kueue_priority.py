from typing import Any

import pytest

from tests.support.injecting import Example, inject, mpijob
from tests.support.kueue_objects import Json, config, namespace, workload_priority_class
from webhook.cluster.snapshot import Snapshot

ID = "kueue-priority"
LABEL = "kueue.x-k8s.io/priority-class"
MANAGED = [config(), namespace("team"), workload_priority_class("high")]
EXAMPLE = Example({"priorityClass": "high"}, view=Snapshot(MANAGED))
OTHERS = "managedJobsNamespaceSelector: {matchLabels: {kueue: 'yes'}}\n"


def injected(job: Json, *objects: Json, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    return inject(ID, job, view=Snapshot(objects), **settings)


def test_nothing_is_injected_without_the_setting_priority_class() -> None:
    assert injected(mpijob(), *MANAGED) == ({}, [])


def test_job_gets_the_class_of_the_policy() -> None:
    added = {"/metadata/labels": {LABEL: "high"}}
    notes = [f"added {LABEL}=high: it decides the place in the queue"]
    assert injected(mpijob(), *MANAGED, priorityClass="high") == (added, notes)


@pytest.mark.parametrize("own", ["low", "high", ""])
def test_class_of_the_user_stays(own: str) -> None:
    assert injected(mpijob(metadata={"labels": {LABEL: own}}), *MANAGED, priorityClass="high") == ({}, [])


def test_missing_class_is_reported() -> None:
    notes = ['WorkloadPriorityClass "gone" of the policy does not exist']
    assert injected(mpijob(), *MANAGED, priorityClass="gone") == ({}, notes)


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="everything unknown"),
        pytest.param(MANAGED[:2], id="classes unknown"),
        pytest.param(MANAGED[1:], id="configuration unknown"),
        pytest.param([MANAGED[0], MANAGED[2]], id="namespace unknown"),
        pytest.param([config(OTHERS), *MANAGED[1:]], id="not managed"),
    ],
)
def test_nothing_is_reported_if_kueue_possibly_does_not_manage_the_job(objects: list[Json]) -> None:
    assert injected(mpijob(), *objects, priorityClass="high") == ({}, [])


def test_job_of_another_controller_stays_unchanged() -> None:
    job = mpijob(run_policy={"managedBy": "kueue.x-k8s.io/multikueue"})
    assert injected(job, *MANAGED, priorityClass="high") == ({}, [])
