"""Policy documents are read from files. Each fault has its line in the file."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.policies import HEADER
from tests.support.strategies import PROPERTY, json_values
from webhook.cli.policy import documents
from webhook.cli.policy.documents import PolicyFiles
from webhook.cli.policy.validation import validate
from webhook.policy import layers
from webhook.policy.document import PolicyError

CONFIGMAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: base
  labels: {training.openshift.io/mpijob-policy: "true"}
data:
  policy.yaml: |
    apiVersion: policy.training.openshift.io/v1
    kind: MPIJobPolicy
    rules:
      worker-count:
        max: 8
"""
BROKEN = CONFIGMAP.replace("max: 8", "max: many")


def load(tmp_path: Path, text: str | bytes, name: str = "p.yaml") -> PolicyFiles:
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return documents.load([str(tmp_path / name)])


def faults(contents: PolicyFiles) -> list[tuple[str, int | None]]:
    return [(fault.field, fault.line) for policy in contents.policies for fault in policy.faults]


def test_bare_document_is_named_after_its_file(tmp_path: Path) -> None:
    (policy,) = load(tmp_path, HEADER + "mode: warn").policies
    assert policy.name == policy.title == str(tmp_path / "p.yaml")
    assert policy.document is not None
    assert policy.document.mode == "warn"
    assert not policy.in_configmap
    assert policy.labelled


def test_configmap_policy_is_named_after_the_configmap(tmp_path: Path) -> None:
    (policy,) = load(tmp_path, CONFIGMAP).policies
    assert (policy.name, policy.title) == ("base", f'{tmp_path / "p.yaml"}: ConfigMap "base"')
    assert policy.document is not None
    assert policy.document.settings_of_rule("worker-count").model_dump()["max"] == 8
    assert policy.in_configmap
    assert policy.labelled


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (HEADER + "rules:\n  worker-count:\n    max: many\n", 5),
        ("# one\n\n---\n" + HEADER + "rules: {worker-count: {max: many}}\n", 6),
        (HEADER + "---\n" + HEADER + "rules: {worker-count: {max: many}}\n...\n", 6),
        (BROKEN, 12),
        ("a: é\nkind: Pod\n---\n" + BROKEN, 15),
        (BROKEN.replace("policy.yaml: |", '"policy.yaml": |2-'), 12),
        (BROKEN.replace("policy.yaml: |", "policy.yaml: |-  # the policy"), 12),
        (
            "kind: List\nitems:\n- kind: Pod\n-\n" + "".join(f"  {row}\n" for row in BROKEN.splitlines()),
            16,
        ),
    ],
)
def test_fault_has_its_line_in_the_file(tmp_path: Path, text: str, line: int) -> None:
    contents = load(tmp_path, text)
    assert faults(contents) == [("rules.worker-count.max", line)]
    assert "lines of" not in contents.policies[-1].title


def test_fault_in_a_quoted_document_has_its_line_in_the_document(tmp_path: Path) -> None:
    text = HEADER + "mode: loud\n"
    quoted = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "q"}, "data": {"policy.yaml": %s}}'
    contents = load(tmp_path, quoted % json.dumps(text), name="p.json")
    assert faults(contents) == [("mode", 3)]
    assert contents.policies[0].title.endswith('p.json: ConfigMap "q" (lines of its policy.yaml)')


def test_faults_are_sorted_by_line(tmp_path: Path) -> None:
    text = HEADER + "rules: {worker-count: {max: many}}\nmode: loud\npriority: high\n"
    assert faults(load(tmp_path, text)) == [("rules.worker-count.max", 3), ("mode", 4), ("priority", 5)]


def test_syntax_error_in_a_configmap_has_its_line_in_the_file(tmp_path: Path) -> None:
    (policy,) = load(tmp_path, CONFIGMAP + "        max: 9\n").policies
    assert str(policy.faults[0]) == (
        'the document: line 13, column 5: the key "max" is there twice, first in line 12: remove one of them'
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected one mapping of kind MPIJobPolicy, found nothing"),
        ("just text", "expected one mapping of kind MPIJobPolicy, found a plain value"),
        ("rules: {}", "is missing, write apiVersion: policy.training.openshift.io/v1"),
        ("apiVersion: policy.training.openshift.io/v1\nkind: MpiJobPolicy", "must be MPIJobPolicy"),
        (b"\xff", "is not text in UTF-8"),
        ("a: [", "line 2, column 1"),
        ("kind: ConfigMap\ndata: {policy.yaml: 3}", "must be text: write `policy.yaml: |`"),
        (
            "kind: ConfigMap\nmetadata: {labels: {training.openshift.io/mpijob-policy: 'true'}}",
            "is missing: it belongs under the key policy.yaml of data",
        ),
        (
            "kind: List\nitems: [{apiVersion: policy.training.openshift.io/v1, kind: x}]",
            "must be a document of its own, not in a list",
        ),
    ],
)
def test_broken_document_is_reported(tmp_path: Path, text: str | bytes, reason: str) -> None:
    (policy,) = load(tmp_path, text).policies
    assert policy.document is None
    assert reason in str(PolicyError(*policy.faults))


def test_expression_that_cannot_be_evaluated_for_a_usual_job_is_reported(tmp_path: Path) -> None:
    own = json.dumps({"id": "team", "expression": "object.metadata.labels['team'] == 'a'", "message": "m"})
    contents = load(tmp_path, f"{HEADER}rules: {{custom: [{own}]}}\n")
    (policy,) = contents.policies
    assert policy.document is not None
    (note,) = policy.notes
    assert note.startswith("rules.custom[0].expression: no value for a usual job, such a job is admitted: ")
    (warning,) = validate(contents.policies, today=date(2026, 11, 22)).warnings
    assert warning == f"{policy.title}: {note}"


@pytest.mark.parametrize("label", ["", "labels: {training.openshift.io/mpijob-policy: 'yes'}"])
def test_missing_or_wrong_label_is_reported(tmp_path: Path, label: str) -> None:
    text = CONFIGMAP.replace('labels: {training.openshift.io/mpijob-policy: "true"}', label)
    (policy,) = load(tmp_path, text).policies
    assert policy.document is not None
    assert not policy.labelled


def test_objects_that_are_not_policies_are_listed(tmp_path: Path) -> None:
    contents = load(tmp_path, "kind: ConfigMap\nmetadata: {name: x}\n---\nkind: Pod\n---\n" + HEADER)
    assert [other.removeprefix(str(tmp_path)) for other in contents.others] == [
        "/p.yaml, document 1: skipped ConfigMap x",
        "/p.yaml, document 2: skipped Pod",
    ]
    assert [policy.name for policy in contents.policies] == [f"{tmp_path}/p.yaml, document 3"]


def test_directory_is_read_and_missing_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(HEADER)
    (tmp_path / "a.yml").write_text(CONFIGMAP)
    contents = documents.load([str(tmp_path / "nope"), str(tmp_path)])
    assert [policy.name for policy in contents.policies] == ["base", f"{tmp_path}/b.yaml"]
    assert [layer.name for layer in contents.layers] == ["base", f"{tmp_path}/b.yaml"]
    assert [str(error) for error in contents.errors] == [f"{tmp_path}/nope: no such file or directory"]


objects = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["ConfigMap", "List", "ConfigMapList", "MPIJobPolicy", "Pod"]) | json_values(),
        "apiVersion": st.sampled_from(["v1", "policy.training.openshift.io/v1"]) | json_values(),
        "metadata": st.fixed_dictionaries({}, optional={"name": json_values(), "labels": json_values()})
        | json_values(),
        "data": st.fixed_dictionaries({"policy.yaml": st.sampled_from([HEADER, BROKEN]) | json_values()})
        | json_values(),
        "items": st.lists(json_values(), max_size=3) | json_values(),
        "rules": json_values(),
    },
)


@PROPERTY
@given(objects | json_values())
def test_any_file_is_read_as_policies_or_skipped(tmp_path_factory: Any, value: Any) -> None:
    contents = load(tmp_path_factory.mktemp("any"), json.dumps(value))
    assert contents.errors == []
    for policy in contents.policies:
        assert (policy.document is None) is bool(policy.faults)
    if not (isinstance(value, dict) and isinstance(value.get("items"), list)):
        assert len(contents.policies) + len(contents.others) == 1


class TestApplied:
    def test_configmap_replaces_the_policy_of_the_same_name(self, tmp_path: Path) -> None:
        before = load(tmp_path, CONFIGMAP + "---\n" + CONFIGMAP.replace("base", "other")).layers
        given = load(tmp_path, CONFIGMAP.replace("8", "9") + "---\n" + CONFIGMAP.replace("base", "new"))
        after = documents.applied(given, before)
        assert [layer.name for layer in after] == ["base", "other", "new"]
        assert after[0].document.settings_of_rule("worker-count").model_dump()["max"] == 9

    def test_bare_document_is_added_to_the_policies(self, tmp_path: Path) -> None:
        before = load(tmp_path, CONFIGMAP).layers
        after = documents.applied(load(tmp_path, f"{HEADER}---\n{HEADER}"), before)
        assert [layer.name for layer in after] == ["base", "p-1", "p-2"]

    def test_bare_document_replaces_the_policy_of_the_same_name(self, tmp_path: Path) -> None:
        before = load(tmp_path, CONFIGMAP.replace("base", "p")).layers
        (after,) = documents.applied(load(tmp_path, HEADER), before)
        assert (after.name, layers.written(after.document)) == ("p", {})

    def test_deleted_policy_does_not_apply(self, tmp_path: Path) -> None:
        before = load(tmp_path, CONFIGMAP).layers
        contents = load(tmp_path, CONFIGMAP.replace("base", "new"))
        assert [layer.name for layer in documents.applied(contents, before, without=["base"])] == ["new"]
        with pytest.raises(KeyError):
            documents.applied(contents, before, without=["other"])
