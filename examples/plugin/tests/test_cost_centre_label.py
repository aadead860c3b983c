"""Tests of the injection."""

from typing import Any

import pytest
from example_mpijob_plugin.cost_centre_label import inject

from webhook.plugins.api import NAMESPACES, UNKNOWN, Namespace
from webhook.plugins.testing import injected

JOB: dict[str, Any] = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "train"}}


class View:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def get(self, resource: object, key: object) -> Any:
        assert (resource, key) == (NAMESPACES, "team-a")
        return self.answer


@pytest.mark.parametrize(
    ("answer", "labels"),
    [
        (Namespace("team-a", {"cost-centre": "4711"}), {"cost-centre": "4711"}),
        (Namespace("team-a", {}), None),
        (UNKNOWN, None),
    ],
    ids=["namespace with the label", "namespace without the label", "unknown namespace"],
)
def test_job_gets_the_label_of_its_namespace(answer: Any, labels: dict[str, str] | None) -> None:
    job, notes = injected(inject, JOB, view=View(answer))  # type: ignore[arg-type]
    assert job["metadata"].get("labels") == labels
    assert bool(notes) == bool(labels)


def test_label_of_the_user_is_unchanged() -> None:
    mine = {**JOB, "metadata": {"name": "train", "labels": {"cost-centre": "1"}}}
    assert injected(inject, mine, view=View(Namespace("team-a", {"cost-centre": "4711"})))[0] == mine  # type: ignore[arg-type]
