"""`mpijob-webhook check` on jobs in files."""

import json
import os
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tests.support.any_job import mangled_jobs
from tests.support.checking import NAMESPACE, POLICY, Check, as_json, run
from tests.support.jobs import GOOD, REMOVE, changed
from tests.support.strategies import PROPERTY, json_values
from webhook.admission.pipelines import load_policy, mutate
from webhook.api import yaml
from webhook.api.mpijob import OLDER_VERSIONS
from webhook.api.review import AdmissionRequest
from webhook.cli import files as manifests
from webhook.cluster.view import NothingKnown

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NOT_JUDGED = "not judged: rules that need a cluster (none given: see --kubeconfig and --cluster)"


def test_valid_job_is_admitted(check: Check) -> None:
    result = check("job.yaml", job_yaml=GOOD)
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "job.yaml: team-a/train: admitted\n  injected:\n    api-access: Pods get no token for the Kubernetes API unless"
    )
    assert (
        "\n    istio: Pods get no Istio sidecar.\n"
        '      added sidecar.istio.io/inject: "false" to Launcher, Worker, job: MPI does not work through a sidecar\n'
        "      + spec.mpiReplicaSpecs[Launcher].template.metadata.labels[sidecar.istio.io/inject]: 'false'\n"
    ) in result.stdout
    assert result.stdout.endswith("\n\n1 job: 1 admitted, 0 rejected\n")
    assert result.stderr == f"{NOT_JUDGED}\n"


def test_rejected_job_shows_every_violation_and_no_injections(check: Check) -> None:
    command = "Launcher.template.spec.containers.0.command"
    job = changed({"Worker.replicas": 1, "Launcher.replicas": 2, command: ["mpirun", "-np", "2", "train"]})
    result = check("job.yaml", job_yaml=job)
    assert result.exit_code == 1
    assert result.stdout == (
        "job.yaml: team-a/train: rejected\n"
        "  1. spec.mpiReplicaSpecs[Launcher].replicas: is 2, there is always one launcher [upstream-contract]"
        " (line 1)\n"
        "     Set replicas to 1.\n"
        "  2. spec.mpiReplicaSpecs[Worker].replicas: 1 worker, at least 2 required [worker-count] (line 1)\n"
        "     Set replicas to 2 or more.\n"
        "\n"
        "1 job: 0 admitted, 1 rejected\n"
    )


def test_unknown_injection_in_the_skip_annotation_causes_a_warning(check: Check) -> None:
    job = changed({"metadata.annotations": {"training.openshift.io/skip": "nothing"}})
    result = check("job.yaml", job_yaml=job)
    warning = (
        '  warning: training.openshift.io/skip: no injection is called "nothing"; `mpijob-webhook rules` lists them\n'
    )
    assert warning in result.stdout
    result = check("job.yaml", job_yaml=changed({"Worker.replicas": 1}, job))
    assert result.exit_code == 1
    assert warning in result.stdout, "rejected jobs get the warning too"


def test_restored_fields_of_an_update_are_reported(check: Check) -> None:
    request = AdmissionRequest(uid="", operation="CREATE", namespace="team-a", object=Raw(json.dumps(GOOD).encode()))
    stored = mutate(request, policy=load_policy(None), view=NothingKnown()).document
    result = check("job.yaml", "--cluster", "c.yaml", job_yaml=GOOD, c_yaml=stored)
    assert result.stdout.splitlines()[1:4] == [
        "  put back from the stored job:",
        "    mpi-env: Current MPI releases get the hostfile, several attempts of ssh, and the job's options of ssh.",
        "      + spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].env:",
    ]
    assert "    istio: " not in result.stdout, "in mappings, kubectl apply keeps fields that are not in the file"


def test_json_has_the_documented_keys(check: Check) -> None:
    result = check("job.yaml", "-o", "json", job_yaml=changed({"Worker.replicas": 1}))
    assert result.exit_code == 1
    (verdict,) = as_json(result)
    assert list(verdict) == [
        "file", "document", "kind", "name", "namespace", "allowed", "message", "causes", "standing", "warnings",
        "ruleFaults", "notJudged", "injected", "hints", "policies",
    ]  # fmt: skip
    assert (verdict["file"], verdict["document"], verdict["kind"]) == ("job.yaml", 1, "MPIJob")
    assert (verdict["name"], verdict["namespace"], verdict["allowed"]) == ("train", "team-a", False)
    assert verdict["message"].startswith('MPIJob "train" was rejected: 1 problem\n1. spec.mpiReplicaSpecs')
    assert verdict["causes"] == [
        {
            "rule": "worker-count",
            "field": "spec.mpiReplicaSpecs[Worker].replicas",
            "message": "1 worker, at least 2 required. Set replicas to 2 or more.",
        }
    ]
    assert any(warning.startswith("injected: job-timeout 24h, ") for warning in verdict["warnings"])
    operation = {"op": "add", "path": "/metadata/annotations", "value": {"sidecar.istio.io/inject": "false"}}
    entries = {entry["id"]: entry for entry in verdict["injected"]}
    assert list(entries["istio"]) == ["id", "reason", "notes", "patch"]
    assert entries["istio"]["reason"] == "Pods get no Istio sidecar."
    assert entries["istio"]["notes"][0].startswith('added sidecar.istio.io/inject: "false" to ')
    assert operation in entries["istio"]["patch"]


def test_job_with_generate_name_instead_of_name_is_admitted(check: Check) -> None:
    job = changed({"metadata.name": REMOVE, "metadata.generateName": "train-"})
    (verdict,) = as_json(check("a.yaml", "-o", "json", a_yaml=job))
    assert verdict["name"] == "train-"
    assert (verdict["allowed"], verdict["message"], verdict["causes"]) == (True, "", [])


CONVERTS = "`mpijob-webhook convert FILE`, which also says what the image needs"


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        *((version, f"Write kubeflow.org/v2beta1, or run {CONVERTS}.") for version in OLDER_VERSIONS[:-1]),
        (OLDER_VERSIONS[-1], f"Run {CONVERTS}."),
        *((version, "Write kubeflow.org/v2beta1.") for version in ("kubeflow.org/v2", "batch/v1", None, 3, "x" * 500)),
    ],
)
def test_other_api_versions_are_rejected(check: Check, version: object, fix: str) -> None:
    (verdict,) = as_json(check("a.yaml", "-o", "json", a_yaml={**GOOD, "apiVersion": version}))
    (cause,) = verdict["causes"]
    assert (cause["rule"], cause["field"]) == ("schema", "apiVersion")
    assert cause["message"].endswith(f". {fix}")
    assert len(verdict["message"]) < 700


@pytest.mark.parametrize("version", [*OLDER_VERSIONS[:-1], "batch/v1"])
def test_other_faults_are_reported_next_to_a_wrong_api_version(check: Check, version: str) -> None:
    job = changed({"spec.slotsPerWorker": "8"}) | {"apiVersion": version}
    (verdict,) = as_json(check("a.yaml", "-o", "json", a_yaml=job))
    assert [cause["field"] for cause in verdict["causes"]] == ["apiVersion", "spec.slotsPerWorker"]


def test_nulls_are_dropped_as_in_the_api_server(check: Check) -> None:
    nulls = {"spec.slotsPerWorker": None, "metadata.labels": {"app": None}, "Worker.template.metadata.labels": None}
    (verdict,) = as_json(check("a.yaml", "-o", "json", a_yaml=changed(nulls)))
    assert verdict["allowed"] is True, "a label with null is dropped"
    operations = [operation for entry in verdict["injected"] for operation in entry["patch"]]
    assert "/metadata/labels/training.kubeflow.org~1job-type" in [operation["path"] for operation in operations]


def test_rules_check_the_job_after_injections(check: Check) -> None:
    job, rules = changed({"spec.runPolicy.cleanPodPolicy": REMOVE}), "rules: {clean-pod-policy: {allowed: [Running]}}\n"
    assert check("a.yaml", "--policy", "p.yaml", a_yaml=job, p_yaml=POLICY + rules).exit_code == 0
    off = "injections: {clean-pod-policy: {enabled: false}}\n"
    assert check("a.yaml", "--policy", "p.yaml", p_yaml=POLICY + rules + off).exit_code == 1


def test_fields_that_the_api_server_sets_are_ignored(check: Check) -> None:
    dumped = {"deletionTimestamp": "2026-01-31T00:00:00Z", "uid": "1", "resourceVersion": "7"}
    job = changed({"Worker.replicas": 1, **{f"metadata.{k}": v for k, v in dumped.items()}})
    assert check("a.yaml", a_yaml=job).exit_code == 1


RUNS = {"conditions": [{"type": "Running", "status": "True"}]}


def test_existing_job_is_checked_as_an_update(check: Check) -> None:
    mine = {"metadata.uid": "1", "spec.sshAuthMountPath": "/home/mpiuser/.ssh", "status": RUNS}
    stored = changed({"spec.slotsPerWorker": 1, **mine})
    files = {
        "job_yaml": changed({"spec.sshAuthMountPath": REMOVE}),
        "c_yaml": {"kind": "List", "items": [stored, NAMESPACE]},
    }
    result = check("job.yaml", "--cluster", "c.yaml", **files)
    assert result.exit_code == 1
    assert result.stdout == (
        "job.yaml: team-a/train: rejected (as a change to the job that the cluster has)\n"
        "  1. spec.slotsPerWorker: changed from 1 to 2 while the job runs, which breaks it [update-safety] (line 1)\n"
        "     Suspend the job first (spec.runPolicy.suspend: true), or make a new one.\n"
        "\n"
        "1 job: 0 admitted, 1 rejected\n"
    )


def test_update_is_merged_like_kubectl_apply(check: Check) -> None:
    applied = changed({"spec.slotsPerWorker": 4})
    annotations = {LAST_APPLIED: json.dumps(applied)}
    stored = changed({"spec.slotsPerWorker": 4, "metadata.annotations": annotations, "status": RUNS})
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=changed({"spec.slotsPerWorker": REMOVE}), c_yaml=stored)
    assert "spec.slotsPerWorker: changed from 4 to 1" in result.stdout
    stored = changed({"spec.slotsPerWorker": 4, "metadata.annotations": {LAST_APPLIED: "]"}})
    assert check("a.yaml", "--cluster", "c.yaml", c_yaml=stored).exit_code == 0


def test_faults_of_an_unchanged_job_are_warnings(check: Check) -> None:
    faulty = changed({"Worker.replicas": 1})
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=faulty, c_yaml=faulty)
    assert result.exit_code == 0, "the update is admitted"
    assert "team-a/train: admitted (as a change to the job that the cluster has)\n" in result.stdout
    assert (
        "  warning: spec.mpiReplicaSpecs[Worker].replicas: it would be rejected if it were new: "
        "1 worker, at least 2 required. Set replicas to 2 or more. [worker-count] (line 1)\n"
    ) in result.stdout
    (verdict,) = as_json(check("a.yaml", "--cluster", "c.yaml", "-o", "json"))
    assert {cause["rule"] for cause in verdict["standing"]} == {"worker-count"}


def test_quota_that_an_existing_job_already_uses_is_not_counted_twice(check: Check) -> None:
    used = {"requests.nvidia.com/gpu": "32"}
    status = {"hard": used, "used": used}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "team-a"}}
    items = {"kind": "List", "items": [GOOD, {**quota, "status": status}]}
    result = check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml=items)
    assert "if it were new" not in result.stdout


def test_option_quiet_shows_only_failing_jobs(check: Check) -> None:
    files = {"a_yaml": GOOD, "b_yaml": NAMESPACE, "c_yaml": changed({"Worker.replicas": 1, "metadata.name": "bad"})}
    result = check("a.yaml", "b.yaml", "--quiet", **files)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    result = check("a.yaml", "b.yaml", "c.yaml", "-q")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith(
        "c.yaml: team-a/bad: rejected\n  1. spec.mpiReplicaSpecs[Worker].replicas: 1 worker"
    )
    assert [verdict["name"] for verdict in as_json(check("a.yaml", "c.yaml", "-q", "-o", "json"))] == ["bad"]
    assert check("b.yaml", "-q").exit_code == 2


def test_exemption_that_depends_on_the_user_is_reported_as_not_judged(check: Check) -> None:
    exempt = "exemptions: [{rules: [images], users: [ann], reason: x}]"
    result = check("a.yaml", "--policy", "p.yaml", a_yaml=GOOD, p_yaml=POLICY + exempt)
    assert result.stderr == f"{NOT_JUDGED}\n"
    (verdict,) = as_json(check("a.yaml", "--policy", "p.yaml", "-o", "json"))
    assert "user" in " ".join(verdict["notJudged"])


def test_job_of_the_same_name_in_another_namespace_is_not_updated(check: Check) -> None:
    stored = changed({"metadata.namespace": "team-b", "spec.slotsPerWorker": 1})
    assert check("a.yaml", "--cluster", "c.yaml", a_yaml=GOOD, c_yaml=stored).exit_code == 0


def test_expired_exemption_is_ignored(check: Check) -> None:
    policy = POLICY + "exemptions: [{rules: [worker-count], namespaces: [team-a], reason: r, expires: %s}]"
    job = changed({"Worker.replicas": 1})
    assert check("a.yaml", "--policy", "p.yaml", a_yaml=job, p_yaml=policy % "2001-01-01").exit_code == 1
    assert check("a.yaml", "--policy", "p.yaml", a_yaml=job, p_yaml=policy % "2999-01-01").exit_code == 0


def test_documents_lists_and_nested_lists_are_read(check: Check) -> None:
    job_list = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJobList", "items": [GOOD]}
    bare = {key: value for key, value in GOOD.items() if key not in {"apiVersion", "kind"}}
    lists = {"apiVersion": "v1", "kind": "List", "items": [GOOD, NAMESPACE, {**job_list, "items": [bare]}]}
    text = "\n---\n".join(json.dumps(document) for document in (lists, job_list, GOOD, NAMESPACE))
    result = check("jobs.yaml", "-o", "json", jobs_yaml=f"# comment\n---\n{text}\n---\n")
    assert result.exit_code == 0
    assert [verdict["document"] for verdict in as_json(result)] == [1, 1, 2, 3]
    empty = {"apiVersion": "v1", "kind": "List", "items": None}
    assert len(as_json(check("jobs.yaml", "-o", "json", jobs_yaml={**empty, "items": [GOOD, empty]}))) == 1


@pytest.mark.parametrize("option", [(), ("--trainer",)])
def test_kind_trainjob_in_the_wrong_case_is_an_error(option: tuple[str, ...], check: Check) -> None:
    result = check("a.yaml", "b.yaml", *option, a_yaml=GOOD, b_yaml={**NAMESPACE, "kind": "Trainjob"})
    assert result.exit_code == 2
    assert 'b.yaml: kind: "Trainjob" is not supported. Write TrainJob.' in result.stderr


def test_other_kinds_are_skipped_with_a_note(check: Check) -> None:
    result = check("a.yaml", "b.yaml", a_yaml=GOOD, b_yaml=NAMESPACE)
    assert result.exit_code == 0
    assert result.stderr.startswith("b.yaml: skipped Namespace team-a\nnot judged: ")
    assert "Namespace" not in result.stdout
    assert check("a.yaml", "b.yaml", "-o", "json").stderr == ""


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("3", "is a number, not a Kubernetes object"),
        ("kind: A\n---\n- 1", "document 2: is a list, not a Kubernetes object"),
        ({"kind": 3}, "has no kind, so it is not a Kubernetes object"),
        (
            {"kind": "List", "items": [GOOD, {"kind": "MPIJobList", "items": [3]}]},
            "items[1]: items[0]: is a number, not a Kubernetes object",
        ),
        ("a: 1\na: 2", 'line 2, column 1: the key "a" is there twice, first in line 1: remove one of them'),
        ("a: .nan", "line 1, column 4: .nan is a number that JSON does not have"),
        (b"\x7fELF\x02\x00", "is not text: control characters are not allowed at position 0"),
        (b"\xff\xfe", "is not text in UTF-8"),
    ],
)
def test_file_that_is_not_a_kubernetes_object_is_an_error(check: Check, content: Any, error: str) -> None:
    result = check("a.yaml", a_yaml=content)
    assert (result.exit_code, result.stderr) == (2, f"error: a.yaml: {error}\n")


@pytest.mark.parametrize(
    ("files", "arguments", "errors"),
    [
        ({}, ["a\0b"], ["a\N{REPLACEMENT CHARACTER}b: embedded null byte"]),
        ({"a_yaml": NAMESPACE}, ["a.yaml", "-o", "json"], ["no MPIJob in a.yaml"]),
        ({"a_yaml": ""}, ["a.yaml", "-o", "json"], ["no MPIJob in a.yaml"]),
        ({"d__a_txt": "x"}, ["d"], ["d: no .json, .yaml, .yml files in this directory"]),
        (
            {"d__b_yaml": "]", "d__c_yaml": "}"},
            ["none.yaml", "d"],
            [
                "none.yaml: no such file or directory",
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
            {"a_yaml": GOOD, "c_yaml": {**NAMESPACE, "metadata": {"name": "x", "labels": 3}}},
            ["a.yaml", "--cluster", "c.yaml"],
            ['c.yaml: Namespace "x": metadata.labels: must be a mapping, not a whole number'],
        ),
    ],
)
def test_unusable_input_is_an_error(
    check: Check, files: dict[str, Any], arguments: list[str], errors: list[str]
) -> None:
    result = check(*arguments, **files)
    assert result.stderr == "".join(f"error: {error}\n" for error in errors)
    assert result.exit_code == 2


def test_unreadable_file_is_an_error(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    check(a_yaml=GOOD)
    monkeypatch.setattr(Path, "open", refuse)
    result = check("a.yaml")
    assert (result.exit_code, result.stderr) == (2, "error: a.yaml: permission denied\n")


def test_endless_file_is_an_error(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "MAX_FILE_BYTES", 2**20)
    result = check("/dev/zero")
    assert (result.exit_code, result.stderr) == (2, "error: /dev/zero: is larger than 1 MiB\n")


def test_standard_input_and_a_pipe_are_read_like_a_file(check: Check) -> None:
    assert check("-", stdin=json.dumps(GOOD)).stdout.startswith("standard input: team-a/train: admitted\n")
    reader, writer = os.pipe()
    os.write(writer, json.dumps(GOOD).encode())
    os.close(writer)
    assert check(f"/dev/fd/{reader}").exit_code == 0
    os.close(reader)


@pytest.mark.parametrize("form", ["text", "json", "junit", "github"])
def test_control_characters_do_not_reach_the_terminal(form: str, check: Check) -> None:
    """The characters are ESC, BEL, carriage return and CSI, in names, keys and values."""
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
    "metadata",
    [None, 3, [], "x", {"name": 3}, {"name": None}, {"name": ["x"], "namespace": {}, "labels": 3}, {"finalizers": 5}],
)
def test_metadata_of_a_wrong_type_is_rejected(check: Check, metadata: object) -> None:
    result = check("a.yaml", "-o", "json", a_yaml={**GOOD, "metadata": metadata})
    assert result.exit_code == 1
    assert as_json(result)[0]["name"] == ""


@PROPERTY
@given(st.lists(mangled_jobs() | json_values(), max_size=3), st.lists(mangled_jobs(), max_size=2))
def test_no_input_causes_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[Any], stored: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "jobs.yaml").write_text("\n---\n".join(map(json.dumps, jobs)))
    (folder / "cluster.yaml").write_text("\n---\n".join(map(json.dumps, stored)))
    for arguments in ([], ["--cluster", str(folder / "cluster.yaml")]):
        command = ["check", str(folder / "jobs.yaml"), "-o", "json", *arguments]
        result = run(*command)
        assert result.exit_code in {0, 1, 2}
        assert result.exit_code == 2 or (result.exit_code == 0) == all(v["allowed"] for v in as_json(result))


JOB = yaml.dump(GOOD)
ONE_WORKER = yaml.dump(changed({"Worker.replicas": 1}))
ONE = "replicas: 1\n"
REPLICAS = "spec.mpiReplicaSpecs[Worker].replicas"
TOLD = f"{REPLICAS}: 1 worker, at least 2 required. Set replicas to 2 or more. [worker-count]"
SHORT_LIVED = changed({"spec.runPolicy.ttlSecondsAfterFinished": 1})
TTL = (
    "spec.runPolicy.ttlSecondsAfterFinished: after 1 s the job may run a second time. Set it to 30 or more. [retention]"
)
CONFIG = "kind: ConfigMap\nmetadata: {name: a}\n"


def line(text: str, piece: str) -> int:
    """The number of the last line that contains `piece`."""
    return text[: text.rindex(piece)].count("\n") + 1


ONE_FAULTY_JOB_IN_A_LIST = yaml.dump(
    {"apiVersion": "v1", "kind": "List", "items": [GOOD, yaml.load_all(ONE_WORKER)[0]]}
)
LAUNCHER_ALONE = yaml.dump(changed({"Worker": REMOVE}))


class TestGithub:
    @pytest.mark.parametrize(
        ("text", "piece", "annotation"),
        [
            (f"# first\n{CONFIG}---\n\n{ONE_WORKER}", ONE, TOLD),
            (ONE_FAULTY_JOB_IN_A_LIST, ONE, TOLD),
            (LAUNCHER_ALONE, "mpiReplicaSpecs", f"{REPLICAS}: 0 workers, at least 2 required. "),
            (yaml.dump(SHORT_LIVED), "ttlSecondsAfterFinished", TTL),
        ],
        ids=["second document", "item of a list", "missing field", "warning"],
    )
    def test_annotation_has_the_line_of_the_field(self, check: Check, text: str, piece: str, annotation: str) -> None:
        result = check("jobs/a.yaml", "-o", "github", files={"jobs/a.yaml": text})
        level, code = ("warning", 0) if annotation == TTL else ("error", 1)
        assert result.exit_code == code
        place = f"::{level} file=jobs/a.yaml,line={line(text, piece)},title=team-a/train"
        assert result.stdout.startswith(f"{place}::{annotation}")
        assert result.stdout.count("\n") == 1

    def test_annotation_for_standard_input_has_no_file(self, check: Check) -> None:
        result = check("-", "-o", "github", stdin=ONE_WORKER)
        assert result.stdout == f"::error title=team-a/train::{TOLD}\n"

    def test_annotation_for_an_unreadable_file_has_the_fault(self, check: Check) -> None:
        result = check("a.yaml", "-o", "github", files={"a.yaml": "a: 1\na: 2"})
        assert result.exit_code == 2
        fault = 'the key "a" is there twice, first in line 1: remove one of them'
        assert result.stdout == f"::error file=a.yaml,title=the file::line 2, column 1: {fault}\n"


class TestJunit:
    def test_each_file_has_a_suite_and_each_job_a_case(self, check: Check) -> None:
        files = {"a.yaml": f"{JOB}---\n{ONE_WORKER}", "b.yaml": JOB, "c.yaml": "]"}
        result = check("a.yaml", "b.yaml", "c.yaml", "-o", "junit", files=files)
        assert result.exit_code == 2
        top = ET.fromstring(result.stdout)
        assert top.attrib == {"name": "check", "tests": "4", "failures": "1", "errors": "1"}
        assert [suite.get("name") for suite in top] == ["c.yaml", "a.yaml", "b.yaml"]
        good, bad = top[1]
        assert (good.get("line"), len(good)) == ("1", 0)
        (failure,) = bad
        assert (failure.tag, failure.get("type")) == ("failure", "worker-count")
        assert failure.text == f"a.yaml:{line(files['a.yaml'], ONE)}: {TOLD}"

    def test_warnings_are_system_output_and_become_failures_with_fail_on_warn(self, check: Check) -> None:
        (((output,),),) = ET.fromstring(check("a.yaml", "-o", "junit", files={"a.yaml": SHORT_LIVED}).stdout)
        assert (output.tag, output.text) == ("system-out", f"warning: a.yaml:1: {TTL}")
        (((failure,),),) = ET.fromstring(check("a.yaml", "-o", "junit", "--fail-on", "warn").stdout)
        assert failure.tag == "failure"


UNKNOWN_SKIP = changed({"metadata.annotations": {"training.openshift.io/skip": "nothing"}})


@pytest.mark.parametrize(
    ("job", "code"),
    [(GOOD, 0), (SHORT_LIVED, 1), (changed({"Worker.replicas": 1}), 1), (UNKNOWN_SKIP, 1)],
    ids=["no finding", "warning of a rule", "violation", "unknown injection to skip"],
)
def test_fail_on_warn_fails_for_warnings_and_violations(check: Check, job: dict[str, Any], code: int) -> None:
    """Injections into the job do not fail the command, although kubectl shows them as warnings."""
    assert check("a.yaml", "--fail-on", "warn", files={"a.yaml": job}).exit_code == code


@pytest.mark.parametrize("form", ["text", "github", "junit"])
def test_option_quiet_shows_warnings_only_with_fail_on_warn(form: str, check: Check) -> None:
    files = {"good.yaml": GOOD, "a.yaml": SHORT_LIVED}
    result = check("good.yaml", "a.yaml", "-q", "-o", form, files=files)
    assert (result.exit_code, "retention" in result.stdout) == (0, False)
    result = check("good.yaml", "a.yaml", "-q", "--fail-on", "warn", "-o", form)
    assert (result.exit_code, "retention" in result.stdout) == (1, True)
    assert "good.yaml" not in result.stdout


@pytest.mark.parametrize("command", ["check a.yaml", "why", "diff", "snapshot", "policy audit", "policy effective"])
def test_namespace_with_equals_sign_is_rejected(command: str) -> None:
    result = run(*command.split(), "-n=team-a")
    assert (result.exit_code, '"=team-a" contains "="' in result.stderr) == (2, True)


FILES = {
    "a/one.yaml": JOB, "a/six.json": GOOD, "a/b/two.yaml": JOB, "a/b/three.yml": JOB,
    "a/.hidden/four.yaml": "]", "a/b/five.txt": "]",
    "c/seven.txt": JOB, "d[1].yaml": JOB, "d1.yaml": "]",
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (["a"], ["a/one.yaml", "a/six.json"]),
        (["-R", "a"], ["a/b/three.yml", "a/b/two.yaml", "a/one.yaml", "a/six.json"]),
        (["a/**/*.yaml"], ["a/b/two.yaml", "a/one.yaml"]),
        (["c/*"], ["c/seven.txt"]),
        (["d[1].yaml"], ["d[1].yaml"]),
    ],
    ids=["folder", "subfolders except hidden ones", "pattern", "pattern for any ending", "name like a pattern"],
)
def test_files_of_folders_and_patterns_are_read(check: Check, arguments: list[str], files: list[str]) -> None:
    result = check(*arguments, "-o", "json", files=FILES)
    assert result.exit_code == 0, result.output
    assert [verdict["file"] for verdict in as_json(result)] == files


def test_pattern_without_matches_is_an_error(check: Check) -> None:
    result = check("none/*.yaml")
    assert (result.exit_code, result.stderr) == (2, "error: none/*.yaml: fits no file\n")


class TestIgnoreOthers:
    OTHERS: ClassVar = {
        "package.json": {"name": "x"}, "values.yaml": "- MPIJob\n", "workflow.yaml": "name: an MPIJob\n",
        "broken.yaml": "]", "configmap.yaml": CONFIG, "list.json": "[1]",
        # Files that are not Kubernetes objects and only mention MPIJob.
        "mkdocs.yml": "nav: [MPIJob.md]\nindex: !!python/name:material.emoji\n",
        ".gitlab-ci.yml": "MPIJob:\n  script: [!reference [.all, script]]\n",
        "settings.json": '// MPIJob\n{"a": 1}', "lines.json": '{"a": "MPIJob"}\n{"b": 2}\n',
    }  # fmt: skip

    def test_files_without_a_job_are_skipped(self, check: Check) -> None:
        result = check(*self.OTHERS, "--ignore-others", "-q", files=self.OTHERS)
        assert (result.exit_code, result.output) == (0, "")
        assert check(*self.OTHERS).exit_code == 2

    def test_folder_without_yaml_files_is_skipped(self, check: Check) -> None:
        assert check("d", "--ignore-others", files={"d/a.txt": "x"}).exit_code == 0

    def test_job_among_other_files_is_checked(self, check: Check) -> None:
        result = check(*self.OTHERS, "a.yaml", "--ignore-others", files={**self.OTHERS, "a.yaml": ONE_WORKER})
        assert result.exit_code == 1
        assert "1 job: 0 admitted, 1 rejected" in result.stdout

    @pytest.mark.parametrize(
        "text",
        [
            f"{JOB}\n]",
            '{"kind":"MPIJob"',
            "kind:\n  MPIJob\nb: [",
            "'kind': MPIJob\nb: !x",
            "kind: MPJob\nspec:\n  mpiReplicaSpecs: [",
        ],
    )
    def test_broken_file_with_a_job_is_an_error(self, text: str, check: Check) -> None:
        result = check("a.yaml", "--ignore-others", files={"a.yaml": text})
        assert result.exit_code == 2

    def test_many_valid_jobs_are_counted_and_not_listed(self, check: Check) -> None:
        jobs = {f"{number}.yaml": JOB for number in range(20)}
        result = check(*jobs, files=jobs)
        assert (result.exit_code, result.stdout) == (0, "20 jobs: 20 admitted, 0 rejected\n")
        assert result.stderr == "not judged: rules that need a cluster (none given: see --kubeconfig and --cluster)\n"

    @pytest.mark.parametrize(
        ("line", "written", "problem", "fix"),
        [
            ("kind: MPIJob", "kind: mpijob", 'kind: "mpijob" is not supported', "Write MPIJob."),
            ("kind: MPIJob", "kind: MPI-Job", 'kind: "MPI-Job" is not supported', "Write MPIJob."),
            ("kind: MPIJob", "kind: PyTorchJob", 'kind: "PyTorchJob" is not supported', "Write MPIJob."),
            ("kind: MPIJob", "Kind: MPIJob", "Kind: is not a field of an MPIJob", "Rename it to kind."),
            ("kind: MPIJob", "Kind: mpijob", "Kind: is not a field of an MPIJob", "Write kind: MPIJob."),
            ("kind: MPIJob\n", "", "kind: is missing", "Write MPIJob."),
            ("apiVersion", "apiversion", "apiversion: is not a field of an MPIJob", "Rename it to apiVersion."),
            (
                "apiVersion: kubeflow.org/v2beta1",
                "api_version: v1",
                "api_version: is not a field of an MPIJob",
                "Write apiVersion: kubeflow.org/v2beta1.",
            ),
        ],
    )
    def test_misspelt_kind_or_api_version_is_one_problem(
        self, check: Check, line: str, written: str, problem: str, fix: str
    ) -> None:
        result = check("a.yaml", "--ignore-others", files={"a.yaml": ONE_WORKER.replace(line, written)})
        assert result.exit_code == 1
        assert f"  1. {problem} [schema]" in result.stdout
        assert result.stdout.count("[schema]") == 1
        assert f"     {fix}\n" in result.stdout
        assert "1 worker, at least 2 required" in result.stdout, "rules are checked too"
        assert check("a.yaml").stdout == result.stdout

    def test_job_without_kind_and_api_version_is_rejected(self, check: Check) -> None:
        text = yaml.dump({"metadata": GOOD["metadata"], "spec": GOOD["spec"]})
        for flags in ((), ("--ignore-others",)):
            result = check("a.yaml", *flags, files={"a.yaml": text})
            assert result.exit_code == 1
            assert "kind: is missing [schema] (line 1)\n     Write MPIJob.\n" in result.stdout

    def test_moved_or_renamed_field_is_reported_with_its_own_line(self, check: Check) -> None:
        text = (
            "apiVersion: kubeflow.org/v2beta1\n"
            "kind: MPIJob\n"
            "metadata: {name: a}\n"
            "spec:\n"
            "  cleanPodPolicy: running\n"
            "  mpiReplicaSpecs:\n"
            "    launcher:\n"
            "      template:\n"
            "       spec:\n"
            "        container:\n"
            "          name: a\n"
            "          Image: A:1\n"
            "    workers:\n"
            "      Replicas: 1\n"
            "      template: {spec: {containers: [{name: a, image: a:1}]}}\n"
        )
        result = check("a.yaml", files={"a.yaml": text})
        lines = [line.rpartition(" (line ")[2] for line in result.stdout.splitlines() if "[schema]" not in line]
        assert [number for number in lines if number.endswith(")")] == ["12)", "5)", "14)"]

    @pytest.mark.parametrize("head", ["kubeflow.org/v1, kind: PyTorchJob", "v1, kind: Job"])
    def test_other_kinds_of_jobs_are_skipped(self, head: str, check: Check) -> None:
        text = f"{{apiVersion: {head}, metadata: {{name: MPIJob}}}}"
        assert check("a.yaml", "--ignore-others", files={"a.yaml": text}).exit_code == 0

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
    def test_job_in_utf16_or_utf32_is_an_error(self, encoding: str, tmp_path: Path, check: Check) -> None:
        (tmp_path / "a.yaml").write_bytes(yaml.dump(GOOD).encode(encoding))
        result = check(str(tmp_path / "a.yaml"), "--ignore-others")
        assert (result.exit_code, "is not text" in result.stderr) == (2, True), result.output

    @pytest.mark.parametrize("kind", ["TrainJob", "ClusterTrainingRuntime"])
    def test_trainjobs_and_runtimes_are_checked_with_the_option_trainer(self, kind: str, check: Check) -> None:
        spec = {"mlPolicy": {"mpi": {"numProcPerNode": 1}}}
        written = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "spec": spec}
        result = check("a.yaml", "--ignore-others", "--trainer", "-o", "json", files={"a.yaml": written})
        assert [verdict["kind"] for verdict in json.loads(result.stdout)] == [kind]

    def test_missing_file_is_an_error(self, check: Check) -> None:
        assert check("none.yaml", "--ignore-others").exit_code == 2
