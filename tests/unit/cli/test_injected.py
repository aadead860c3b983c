"""The text about injections: for each injection, its reason and the added fields."""

from typing import Any

import click
import pytest

from tests.support.injecting import mpijob, mutate, policy_of
from webhook import injections
from webhook.admission.decision import Decision
from webhook.cli.injected import WIDTH, by_injection, report
from webhook.injections import Caution

LAUNCHER = "/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0"
FIELD = "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0]"


def decision(*operations: tuple[str, Any], author: str = "labels", notes: tuple[str, ...] = ()) -> Decision:
    patch: list[dict[str, object]] = [{"op": "add", "path": path, "value": value} for path, value in operations]
    return Decision(patch=patch, authors=[author] * len(patch), told={author: [*notes]})


def lines(injecting: Decision, *, updates: bool = False) -> list[str]:
    return [click.unstyle(line) for line in report(by_injection(injecting), updates=updates)]


def added(*operations: tuple[str, Any]) -> list[str]:
    title, heading, *rest = lines(decision(*operations))
    assert title == "injected:"
    assert heading == "  labels: Jobs and pods get labels by which users find and count them."
    return [line.removeprefix("    + ") for line in rest]


@pytest.mark.parametrize(
    ("operations", "shown"),
    [
        ([("/spec/runPolicy/suspend", True)], ["spec.runPolicy.suspend: true"]),
        ([("/spec/runPolicy", {"suspend": True})], ["spec.runPolicy.suspend: true"]),
        ([("/metadata/labels/a.b~1c~0d", "1")], ["metadata.labels[a.b/c~d]: '1'"]),
        (
            [(f"{LAUNCHER}/securityContext", {"a": 1, "b": {"c": 2}})],
            [f"{FIELD}.securityContext: {{a: 1, b: {{c: 2}}}}"],
        ),
        ([(f"{LAUNCHER}/resources/limits", {})], [f"{FIELD}.resources.limits: {{}}"]),
        ([(f"{LAUNCHER}/env/-", {"name": "A"})], [f"{FIELD}.env: [{{name: A}}]"]),
        (
            [(f"{LAUNCHER}/env", [{"name": "A"}]), (f"{LAUNCHER}/env/-", {"name": "B"})],
            [f"{FIELD}.env: [{{name: A}}, {{name: B}}]"],
        ),
        (
            [(f"{LAUNCHER}/env/-", {"name": "A"}), (f"{LAUNCHER}/ports/-", {"name": "B"})],
            [f"{FIELD}.env: [{{name: A}}]", f"{FIELD}.ports: [{{name: B}}]"],
        ),
        (
            [(f"{LAUNCHER}/env/-", {"name": "A", "value": "v" * 60})],
            [f"{FIELD}.env:", "  - name: A", f"    value: {'v' * 60}"],
        ),
        (
            [(f"{LAUNCHER}/args", ["-c", "a\nb\n", "v" * 60])],
            [f"{FIELD}.args:", "  - -c", "  - (2 lines)", f"  - {'v' * 60}"],
        ),
        ([("/metadata/labels/a", "v" * 500)], [f"metadata.labels.a: {'v' * (WIDTH - 22)}..."]),
        ([(f"/metadata/{'a' * 200}", "v" * 500)], [f"metadata.{'a' * 200}: {'v' * 17}..."]),
        (
            [(f"/metadata/{'a' * 200}", [{"b": "v" * 500}])],
            [f"metadata.{'a' * 200}:", f"  - b: {'v' * (WIDTH - 10)}..."],
        ),
        ([("/metadata/labels/a", "\x1b[2J")], ['metadata.labels.a: "\\e[2J"']),
    ],
)
def test_added_fields_are_shown_with_their_values(operations: list[tuple[str, Any]], shown: list[str]) -> None:
    assert added(*operations) == shown


def test_notes_follow_the_reason_and_cautions_are_left_out() -> None:
    injecting = decision(("/a", 1), notes=("added a\x1b", Caution("not b")))
    assert lines(injecting)[2:] == ["    added a\N{REPLACEMENT CHARACTER}", "    + a: 1"]
    assert injecting.cautions == ["labels: not b"]
    (entry,) = by_injection(injecting)
    assert entry.as_json()["notes"] == ["added a\x1b"]


def test_restored_fields_of_an_update_have_their_own_title() -> None:
    assert lines(decision(("/a", 1), author="retired"), updates=True) == [
        "put back from the stored job:",
        "  retired",
        "    + a: 1",
    ]


def test_text_is_empty_without_injections() -> None:
    assert lines(Decision()) == []


def test_only_the_annotation_that_lists_the_injections_is_left_out() -> None:
    injecting = mutate(mpijob(), policy_of({}))
    *operations, listed = injecting.patch
    assert "injected" in str(listed["path"])
    entries = by_injection(injecting)
    assert [operation for entry in entries for operation in entry.patch] == operations
    assert [entry.id for entry in entries] == list(dict.fromkeys(injecting.authors))
    assert all(entry.reason == injections.REGISTRY[entry.id].documentation[0] for entry in entries)
