"""`mpijob-webhook check`: what is read, and what is not usable."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.support.any_job import mangled_jobs
from tests.support.checking import NAMESPACE, POLICY, Check, as_json
from tests.support.jobs import GOOD, changed
from tests.support.strategies import PROPERTY, json_values
from webhook.api import yaml
from webhook.cli import files as manifests
from webhook.cli.main import main


def test_several_documents_lists_and_lists_of_lists(check: Check) -> None:
    job_list = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJobList", "items": [GOOD]}
    bare = {key: value for key, value in GOOD.items() if key not in {"apiVersion", "kind"}}
    lists = {"apiVersion": "v1", "kind": "List", "items": [GOOD, NAMESPACE, {**job_list, "items": [bare]}]}
    text = "\n---\n".join(json.dumps(document) for document in (lists, job_list, GOOD, NAMESPACE))
    result = check("jobs.yaml", "-o", "json", jobs_yaml=f"# comment\n---\n{text}\n---\n")
    assert result.exit_code == 0
    assert [verdict["document"] for verdict in as_json(result)] == [1, 1, 2, 3]
    empty = {"apiVersion": "v1", "kind": "List", "items": None}
    assert len(as_json(check("jobs.yaml", "-o", "json", jobs_yaml={**empty, "items": [GOOD, empty]}))) == 1


def test_other_kinds_are_passed_over_with_a_note(check: Check) -> None:
    result = check("a.yaml", "b.yaml", a_yaml=GOOD, b_yaml=NAMESPACE)
    assert result.exit_code == 0
    assert result.stderr.startswith("b.yaml: passed over Namespace team-a\nnot judged: ")
    assert "Namespace" not in result.stdout
    assert check("a.yaml", "b.yaml", "-o", "json").stderr == ""


def test_a_directory_stands_for_its_files(check: Check) -> None:
    files = {"jobs__a_yaml": GOOD, "jobs__b_yml": GOOD, "jobs__c_json": GOOD, "jobs__d_txt": "]"}
    result = check("jobs", "-o", "json", **files)
    assert result.exit_code == 0
    assert len(as_json(result)) == 3
    text = check("jobs").stdout
    assert [line for line in text.splitlines() if line.startswith("jobs")] == [
        f"jobs/{name}: team-a/train: admitted" for name in ("a.yaml", "b.yml", "c.json")
    ]


def test_standard_input(check: Check) -> None:
    result = check("-", stdin=json.dumps(GOOD))
    assert result.exit_code == 0
    assert result.stdout.startswith("standard input: team-a/train: admitted\n")


@pytest.mark.parametrize(
    ("files", "arguments", "errors"),
    [
        ({}, ["none.yaml"], ["none.yaml: no such file or directory"]),
        ({}, ["a\0b"], ["a\N{REPLACEMENT CHARACTER}b: embedded null byte"]),
        ({"a_yaml": NAMESPACE}, ["a.yaml", "-o", "json"], ["no MPIJob in a.yaml"]),
        ({"a_yaml": ""}, ["a.yaml", "-o", "json"], ["no MPIJob in a.yaml"]),
        ({"a_yaml": "3"}, ["a.yaml"], ["a.yaml: is a number, not a Kubernetes object"]),
        ({"a_yaml": "text"}, ["a.yaml"], ["a.yaml: is text, not a Kubernetes object"]),
        ({"a_yaml": "- 1\n- 2"}, ["a.yaml"], ["a.yaml: is a list, not a Kubernetes object"]),
        ({"a_yaml": "kind: A\n---\n- 1"}, ["a.yaml"], ["a.yaml: document 2: is a list, not a Kubernetes object"]),
        ({"a_yaml": {"kind": 3}}, ["a.yaml"], ["a.yaml: has no kind, so it is not a Kubernetes object"]),
        (
            {"a_yaml": {"kind": "List", "items": [GOOD, {"kind": "MPIJobList", "items": [3]}]}},
            ["a.yaml"],
            ["a.yaml: items[1]: items[0]: is a number, not a Kubernetes object"],
        ),
        ({"a_yaml": "a: 1\na: 2"}, ["a.yaml"], ['a.yaml: line 2, column 1: the key "a" is there twice']),
        ({"a_yaml": "a: .nan"}, ["a.yaml"], ["a.yaml: line 1, column 4: .nan is a number that JSON does not have"]),
        (
            {"a_yaml": b"\x7fELF\x02\x00"},
            ["a.yaml"],
            ["a.yaml: is not text: control characters are not allowed at position 0"],
        ),
        ({"a_yaml": b"\xff\xfe"}, ["a.yaml"], ["a.yaml: is not text in UTF-8"]),
        ({"d__a_txt": "x"}, ["d"], ["d: no .json, .yaml, .yml files in this directory"]),
        (
            {"a_yaml": "{", "d__b_yaml": "]", "d__c_yaml": "}"},
            ["none.yaml", "a.yaml", "d"],
            [
                "none.yaml: no such file or directory",
                "a.yaml: line 2, column 1: did not find expected node content",
                "d/b.yaml: line 1, column 1: did not find expected node content",
                "d/c.yaml: line 1, column 1: did not find expected node content",
            ],
        ),
        ({"a_yaml": GOOD}, ["a.yaml", "--policy", "p.yaml"], ["p.yaml: no such file or directory"]),
        (
            {"a_yaml": GOOD, "p_yaml": f"{POLICY}rules: {{worker-count: {{max: 0, what: 1}}}}"},
            ["a.yaml", "--policy", "p.yaml"],
            [
                "p.yaml: line 3: rules.worker-count.max: must be at least 1 (it is 0)",
                "p.yaml: line 3: rules.worker-count.what: is not a setting; accepted: action, min, max",
            ],
        ),
        ({"a_yaml": GOOD}, ["a.yaml", "--cluster", "c.yaml"], ["c.yaml: no such file or directory"]),
        (
            {"a_yaml": GOOD, "c_yaml": "]"},
            ["a.yaml", "--cluster", "c.yaml"],
            ["c.yaml: line 1, column 1: did not find expected node content"],
        ),
        (
            {"a_yaml": GOOD, "c_yaml": {**NAMESPACE, "metadata": {"name": "x", "labels": 3}}},
            ["a.yaml", "--cluster", "c.yaml"],
            ['c.yaml: Namespace "x": metadata.labels: must be a mapping, not a whole number'],
        ),
    ],
)
def test_unusable_input(check: Check, files: dict[str, Any], arguments: list[str], errors: list[str]) -> None:
    result = check(*arguments, **files)
    assert result.stderr == "".join(f"error: {error}\n" for error in errors)
    assert result.exit_code == 2


def test_an_unreadable_file(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    check(a_yaml=GOOD)
    monkeypatch.setattr(Path, "open", refuse)
    result = check("a.yaml")
    assert (result.exit_code, result.stderr) == (2, "error: a.yaml: permission denied\n")


def test_a_file_without_end(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MAX_FILE_BYTES", 2**20)
    result = check("/dev/zero")
    assert (result.exit_code, result.stderr) == (2, "error: /dev/zero: is larger than 1 MiB\n")


def test_usable_files_are_checked_beside_unusable_ones(check: Check) -> None:
    result = check("none.yaml", "a.yaml", "-o", "json", a_yaml=changed({"Worker.replicas": 1}))
    assert result.exit_code == 2
    assert [verdict["allowed"] for verdict in as_json(result)] == [False]


def test_a_pipe_is_a_file(check: Check) -> None:
    reader, writer = os.pipe()
    os.write(writer, json.dumps(GOOD).encode())
    os.close(writer)
    assert check(f"/dev/fd/{reader}").exit_code == 0
    os.close(reader)


@pytest.mark.parametrize("form", ["text", "json", "yaml", "sarif", "junit", "github"])
def test_control_characters_do_not_reach_the_terminal(form: str, check: Check) -> None:
    """ESC, BEL, a carriage return, and CSI as one character; in names, keys and values."""
    job = changed(
        {
            "metadata.name": "\x1b]0;owned\x07",
            "metadata.labels": {"training.kubeflow.org/job-name": "\x1b[2J", "\x9b2J": "a\rb"},
            "Worker.template.spec.containers.0.image": "a\x1b[2J\x9b2J\r::error::b",
        }
    )
    result = check("a.yaml", "-o", form, a_yaml=job)
    assert result.exit_code == 1
    assert [char for char in "\x1b\x07\x9b\r" if char in result.output] == []


@pytest.mark.parametrize(
    "metadata", [None, 3, [], "x", {"name": 3}, {"name": None}, {"name": ["x"], "namespace": {}, "labels": 3}]
)
def test_metadata_of_any_shape(check: Check, metadata: object) -> None:
    result = check("a.yaml", "-o", "json", a_yaml={**GOOD, "metadata": metadata})
    assert result.exit_code == 1
    assert as_json(result)[0]["name"] == ""


@PROPERTY
@given(st.lists(mangled_jobs() | json_values(), max_size=3), st.lists(mangled_jobs(), max_size=2))
def test_no_input_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[Any], stored: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "jobs.yaml").write_text("\n---\n".join(map(json.dumps, jobs)))
    (folder / "cluster.yaml").write_text("\n---\n".join(map(json.dumps, stored)))
    for arguments in ([], ["--cluster", str(folder / "cluster.yaml")]):
        command = ["check", str(folder / "jobs.yaml"), "-o", "json", *arguments]
        result = CliRunner().invoke(main, command, catch_exceptions=False)
        assert result.exit_code in {0, 1, 2}
        assert result.exit_code == 2 or (result.exit_code == 0) == all(v["allowed"] for v in as_json(result))


def test_yaml_written_by_hand(check: Check) -> None:
    text = yaml.dump(GOOD).replace("replicas: 4", "replicas: four")
    result = check("a.yaml", a_yaml=text)
    assert "spec.mpiReplicaSpecs[Worker].replicas: must be a whole number, not text [schema]" in result.stdout
