"""Checks of the metadata of jobs in files. These checks do not depend on the schema or the rules."""

from typing import Any

import pytest

from webhook.cli.job_check import metadata_violations

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}
ALLOWED = 'allowed are letters, digits, "-", "_" and "."'


def faults(metadata: Any) -> list[str]:
    violations = metadata_violations(metadata)
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
        None,
        [1],
        {"name": 1, "labels": [1], "annotations": {"a": 1}, "finalizers": {"a": 1}, "ownerReferences": ["x"]},
    ],
)
def test_valid_metadata_has_no_faults(metadata: Any) -> None:
    assert faults(metadata) == []


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        ({"labels": {"project": "llm x"}}, f'labels[project]: "llm x" contains " "; {ALLOWED}. Write llm-x.'),
        ({"labels": {"my team": "x"}}, f'labels[my team]: its key contains " "; {ALLOWED}. Rename it to my-team.'),
        ({"annotations": {"a b": "x"}}, f'annotations[a b]: its key contains " "; {ALLOWED}. Rename it to a-b.'),
        (
            {"finalizers": ["a", "a b"]},
            f'finalizers[1]: "a b" contains " "; {ALLOWED}. Use letters, digits, -, _ and .',
        ),
        (
            {"name": "bert-"},
            'name: "bert-" must start and end with a lower case letter or a digit, and so must every part between two '
            '".". Write bert.',
        ),
        (
            {"generateName": "Bert-"},
            'generateName: "Bert-" contains "B"; allowed are lower case letters, digits, "-" and ".". Write bert-.',
        ),
        (
            {"namespace": "Team_A"},
            'namespace: "Team_A" contains "T"; allowed are lower case letters, digits and "-". Write team-a, or '
            "another that exists.",
        ),
    ],
)
def test_invalid_metadata_is_rejected(metadata: dict[str, Any], fault: str) -> None:
    assert faults(metadata) == [f"metadata.{fault}"]
