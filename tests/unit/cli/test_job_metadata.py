"""Checks of the metadata of jobs in files. These checks do not depend on the schema or the rules."""

from typing import Any

import pytest

from tests.support.jobs import changed
from webhook.cli.job_check import metadata_violations

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}
ALLOWED = 'allowed are letters, digits, "-", "_" and "."'


def faults(changes: dict[str, Any]) -> list[str]:
    violations = metadata_violations(changed(changes)["metadata"])
    return [f"{violation.path}: {violation.message}. {violation.fix}" for violation in violations]


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "a.b-c1"},
        {"name": "", "generateName": "a-"},
        {"name": "a", "labels": {"a": "", "example.com/B_c": "x.Y"}, "annotations": {"Example.com/A": "any text"}},
        {"name": "a", "finalizers": ["wait", "example.com/wait"], "namespace": "team-a"},
        {"name": "a", "ownerReferences": [{**OWNER, "controller": True}, OWNER]},
        # The schema reports these wrong types.
        {"name": 1, "labels": [1], "annotations": {"a": 1}, "finalizers": {"a": 1}, "ownerReferences": ["x"]},
    ],
)
def test_valid_metadata_has_no_faults(metadata: dict[str, Any]) -> None:
    assert faults({"metadata": metadata}) == []


@pytest.mark.parametrize("metadata", [None, "x", [1]])
def test_metadata_that_is_not_a_mapping_has_no_faults(metadata: Any) -> None:
    assert metadata_violations(metadata) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"metadata.labels": {"project": "llm training"}},
            f'metadata.labels[project]: "llm training" contains " "; {ALLOWED}. Write llm-training.',
        ),
        (
            {"metadata.labels": {"my project": "x"}},
            f'metadata.labels[my project]: its key contains " "; {ALLOWED}. Rename it to my-project.',
        ),
        (
            {"metadata.annotations": {"my note": "x"}},
            f'metadata.annotations[my note]: its key contains " "; {ALLOWED}. Rename it to my-note.',
        ),
        (
            {"metadata.finalizers": ["wait", "a b"]},
            f'metadata.finalizers[1]: "a b" contains " "; {ALLOWED}. Use letters, digits, -, _ and .',
        ),
        (
            {"metadata.name": "bert-"},
            'metadata.name: "bert-" must start and end with a lower case letter or a digit, and so must every part '
            'between two ".". Write bert.',
        ),
        (
            {"metadata": {"generateName": "Bert-"}},
            'metadata.generateName: "Bert-" contains "B"; allowed are lower case letters, digits, "-" and "."'
            ". Write bert-.",
        ),
        (
            {"metadata.namespace": "Team_A"},
            'metadata.namespace: "Team_A" contains "T"; allowed are lower case letters, digits and "-". Write '
            "team-a, or another that exists.",
        ),
    ],
)
def test_invalid_metadata_is_rejected(changes: dict[str, Any], fault: str) -> None:
    assert faults(changes) == [fault]
