from dataclasses import replace
from datetime import date

import click
import pytest

from tests.support.policies import policy_file
from webhook.cli.policy.differences import Change, differences
from webhook.cli.policy.documents import PolicyFile

TODAY = date(2026, 11, 21)


def bare(path: str, text: str) -> PolicyFile:
    return replace(policy_file(path, text), in_configmap=False)


def text(changes: list[Change]) -> list[str]:
    return [click.unstyle(line) for change in changes for line in change.as_text(TODAY)]


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("mode: warn", "mode: warn", []),
        ("mode: warn", "mode: audit", ["mode: warn -> audit"]),
        ("", "rules: {gpus: {max: 4}}", ["rules.gpus.max: not set (default 16) -> 4"]),
        ("rules: {gpus: {max: 4}}", "", ["rules.gpus.max: 4 -> not set (default 16)"]),
        ("", "priority: 0\nnamespaces: null", []),
        ("", "priority: 3", ["priority: 0 -> 3"]),
        ("", "namespaces: {matchLabels: {a: b}}", ["namespaces: null -> {matchLabels: {a: b}}"]),
        (
            "injections: {labels: {job: {a: b}}}",
            "injections: {labels: {job: {a: c}}}",
            ["injections.labels.job: {a: b} -> {a: c}"],
        ),
        (
            "exemptions: [{rules: [gpus], users: [u], reason: r}, {rules: ['*'], groups: [g], reason: s}]",
            "exemptions: [{rules: ['*'], groups: [g], reason: s}, {rules: [gpus], users: [v], reason: r}]",
            ["- exemption from gpus for users u: r", "+ exemption from gpus for users v: r"],
        ),
    ],
)
def test_changed_values_are_listed(old: str, new: str, lines: list[str]) -> None:
    changes = differences([policy_file("p", old)], [policy_file("p", new)])
    assert text(changes) == (["p changes", *(f"  {line}" for line in lines)] if lines else [])


def test_single_documents_with_different_names_are_compared() -> None:
    changes = differences([bare("a/old.yaml", "")], [bare("b/new.yaml", "mode: warn")])
    assert text(changes) == ["old.yaml -> new.yaml changes", "  mode: not set (default enforce) -> warn"]


def test_policies_of_two_sets_are_compared_by_name() -> None:
    old = [policy_file("a", "mode: warn"), policy_file("b", "mode: warn"), policy_file("c", "priority: 1")]
    new = [policy_file("d", "mode: audit"), policy_file("b", "mode: warn"), policy_file("c", "priority: 2")]
    assert text(differences(old, new)) == [
        "a goes",
        "  mode: warn -> not set (default enforce)",
        "c changes",
        "  priority: 1 -> 2",
        "d comes",
        "  mode: not set (default enforce) -> audit",
    ]


def test_files_in_two_folders_are_compared_by_file_name() -> None:
    old = [bare(f"old/{name}", "mode: warn") for name in ("a.yaml", "b.yaml")]
    new = [bare(f"new/{name}", "mode: audit") for name in ("a.yaml", "c.yaml")]
    assert [(change.name, change.kind) for change in differences(old, new)] == [
        ("a.yaml", "changes"),
        ("b.yaml", "goes"),
        ("c.yaml", "comes"),
    ]


def test_added_or_removed_empty_document_is_reported() -> None:
    assert text(differences([policy_file("a")], [policy_file("a"), policy_file("b")])) == ["b comes"]


def test_json_output() -> None:
    (change,) = differences([policy_file("p")], [policy_file("p", "rules: {gpus: {max: 4}}")])
    assert change.as_json() == {
        "policy": "p",
        "what": "changes",
        "values": [{"path": "rules.gpus.max", "old": 16, "oldIsSet": False, "new": 4, "newIsSet": True}],
        "exemptionsGone": [],
        "exemptionsNew": [],
    }
