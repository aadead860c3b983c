"""Tests of the rule."""

from typing import Any

import pytest
from example_mpijob_plugin.cost_centre import check

from webhook.plugins.testing import violations

JOB: dict[str, Any] = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "train"}}
ONLY_TWO = {"allowed": ["4711", "4712"]}


def labelled(value: str) -> dict[str, Any]:
    return {**JOB, "metadata": {"name": "train", "labels": {"cost-centre": value}}}


@pytest.mark.parametrize(
    ("job", "settings", "messages"),
    [
        (labelled("4711"), {}, []),
        (labelled("4711"), ONLY_TWO, []),
        (JOB, {}, ["is missing: nobody pays for this job"]),
        (labelled("1"), ONLY_TWO, ['there is no cost centre "1"']),
    ],
    ids=["any value is allowed", "allowed value", "no label", "other value"],
)
def test_label_must_be_an_allowed_cost_centre(
    job: dict[str, Any], settings: dict[str, Any], messages: list[str]
) -> None:
    assert [violation.message for violation in violations(check, job, settings)] == messages
