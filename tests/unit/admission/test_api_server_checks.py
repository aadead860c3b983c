"""The mutating hook warns about values that the API server rejects before it calls the validating hook."""

from typing import Any

import pytest

from tests.support.jobs import changed, request
from webhook.admission.pipelines import load_policy, mutate
from webhook.cluster.view import NothingKnown

MEMORY = "Worker.template.spec.containers.0.resources"
CONTAINER = "spec.mpiReplicaSpecs[Worker]...[0].resources"


def warnings(changes: dict[str, Any]) -> list[str]:
    decision = mutate(request(changed(changes)), policy=load_policy(None), view=NothingKnown())
    assert decision.allowed
    return [warning for warning in decision.warnings if not warning.startswith("injected: ")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metadata.name": "resnet_50"}, 'metadata.name: "resnet_50" contains "_". {}'),
        ({"metadata.name": "ResNet"}, 'metadata.name: "ResNet" contains "R". {}'),
        ({"metadata": {"generateName": "res_net-"}}, 'metadata.generateName: "res_net-" contains "_"'),
        (
            {MEMORY: {"limits": {"memory": "16GB"}}},
            'spec.mpiReplicaSpecs[Worker]...limits[memory]: "16GB" is not a quantity. Write 16Gi or 16G.',
        ),
        ({MEMORY: {"requests": {"cpu": "two"}}}, None),
    ],
)  # fmt: skip
def test_invalid_name_or_quantity_causes_a_warning(changes: dict[str, Any], expected: str | None) -> None:
    (warning,) = warnings(changes)
    if expected is not None:
        advice = "Use lower case letters, digits and -, a letter first."
        assert warning == f"{expected.format(advice)} [upstream-contract]"
    assert len(warning) <= 120


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"metadata.labels": {"project": "llm training"}},
            'metadata.labels[project]: "llm training" contains " ". Write llm-training. [upstream-contract]',
        ),
        (
            {"metadata.annotations": {"my note": "x"}},
            'metadata.annotations[my note]: its key contains " ". Rename it to my-note. [upstream-contract]',
        ),
        ({"metadata.labels": {"k" * 300: "x y" * 100}}, None),
    ],
)
def test_invalid_label_or_annotation_causes_a_warning(changes: dict[str, Any], expected: str | None) -> None:
    reported = warnings(changes)
    assert expected is None or reported == [expected]
    assert reported
    assert all(len(each) <= 120 for each in reported)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metadata.labels": {"a": "", "example.com/B": "c"}, "metadata.annotations": {"Example.com/A": "any text"}},
        {"metadata.name": "50-resnet"},  # a valid name but not a DNS label, so the validating hook reports it
        {"metadata.name": "a" * 70},
        {MEMORY: {"limits": {"memory": "1e1.5"}}},  # matches the API server's pattern, but is not a quantity
        {MEMORY: {"limits": {"memory": 16}}},
        {"metadata": {"generateName": "resnet-"}},
    ],
)
def test_no_warning_for_a_valid_value_or_a_fault_that_the_validating_hook_reports(changes: dict[str, Any]) -> None:
    assert warnings(changes) == []
