"""`policy test` finds tests, runs them, reports failures, and rejects unusable input."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support import checking
from tests.support.jobs import changed
from tests.support.paths import MANIFESTS
from tests.support.policies import HEADER, configmap
from webhook.api import yaml
from webhook.cli import ci_reports
from webhook.cli.ci_reports import Checked, Problem

HEAD = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicyTest\n"
FIELDS = ("job", "cluster", "namespace", "user", "date", "name", "change", "expect", "stored")
REPLICAS = "spec.mpiReplicaSpecs[Worker].replicas"
TIER = """\
policies: [tier.yaml]
job: job.yaml
tests:
  - name: eight
    change: {"spec.mpiReplicaSpecs[Worker].replicas": 8}
  - name: nine
    change: {"spec.mpiReplicaSpecs[Worker].replicas": 9}
    expect: [{rule: worker-count, message: at most 8}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # The job has no findings except those of the tested policy.
    job = changed({"Launcher.template.spec.containers.0.command": ["mpirun", "python", "train.py"]})
    Path("job.yaml").write_text(yaml.dump(job))
    Path("tier.yaml").write_text(yaml.dump(configmap("tier", HEADER + "rules: {worker-count: {max: 8}}\n")))
    return tmp_path


run = partial(checking.run, "policy", "test")


def outcomes(text: str, *arguments: str, code: int | None = None) -> list[str]:
    """The output for a file of tests, without the title and the summary."""
    Path("t.yaml").write_text(HEAD + text)
    result = run("t.yaml", *arguments)
    if code is not None:
        assert result.exit_code == code, result.output
    return result.stdout.splitlines()[1:-1]


def errors(text: str) -> list[str]:
    """The errors of an unusable file."""
    Path("t.yaml").write_text(text)
    result = run("t.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    return [line.removeprefix("error: ") for line in result.stderr.splitlines()]


def suite(case: str, head: str = "") -> str:
    """A file with one test."""
    return f"policies: [tier.yaml]\njob: job.yaml\n{head}tests:\n  - name: it\n    {case}\n"


class TestOutcomes:
    def test_passing_tests_are_listed(self) -> None:
        assert outcomes(TIER, code=0) == ["  ok  eight", "  ok  nine"]
        assert run("t.yaml").stdout.endswith("2 tests: 2 passed, 0 failed\n")

    def test_missing_finding_is_reported(self) -> None:
        lines = outcomes(suite("expect: [{rule: worker-count, field: spec, message: too many}]"), code=1)
        assert lines == ["  FAILED  it", '    line 7: expected but missing: deny spec: "too many" [worker-count]']

    def test_unknown_rule_in_a_suite_is_reported(self) -> None:
        (_, line) = outcomes(suite("expect: [{rule: worker-counts}]"), code=1)
        assert line.endswith("[worker-counts]; no rule is called worker-counts; did you mean worker-count?")

    def test_finding_of_a_custom_rule_can_be_expected(self) -> None:
        custom_rules = "rules: {custom: [{id: few, expression: job.workers < 4, message: too many}]}\n"
        Path("tier.yaml").write_text(HEADER + custom_rules)
        assert outcomes(suite("expect: [{rule: custom/few, message: too many}]"), code=0)
        (_, line, _) = outcomes(suite("expect: [{rule: custom/fiew}]"), code=1)
        assert line.endswith("no rule is called custom/fiew; did you mean custom/few?")

    def test_custom_rule_that_cannot_be_evaluated_fails_the_test(self) -> None:
        custom_rules = "rules: {custom: [{id: few, expression: object.metadata.nope == 1, message: bad%s}]}\n"
        Path("tier.yaml").write_text(HEADER + custom_rules % "")
        (_, line) = outcomes(suite("expect: []", "rules: []\n"), code=1)
        assert line.startswith("    line 8: not expected: fault ")
        assert line.endswith("[custom/few]")
        assert outcomes(suite("expect: [{rule: custom/few, action: fault, message: nope}]"), code=0)
        Path("tier.yaml").write_text(HEADER + custom_rules % ", onError: deny")
        assert outcomes(suite("expect: [{rule: custom/few, action: deny}]"), code=0)

    def test_unexpected_finding_is_reported(self) -> None:
        (_, line) = outcomes(suite(f'change: {{"{REPLICAS}": 9}}'), code=1)
        assert line == (
            f"    line 6: not expected: deny {REPLICAS}: 9 workers, at most 8 allowed. "
            "Set replicas to 8 or fewer. [worker-count]"
        )

    def test_finding_with_a_different_action_fails_the_test(self) -> None:
        case = suite(f'change: {{"{REPLICAS}": 9}}\n    expect: [{{rule: worker-count, action: warn}}]')
        assert len(outcomes(case, code=1)) == 3

    def test_unexpected_warning_of_a_tested_rule_fails_the_test(self) -> None:
        latest = 'change: {"spec.mpiReplicaSpecs[Worker].template.spec.containers[worker].image": x/y}'
        assert "not expected: warn" in outcomes(suite(latest), code=1)[1]
        assert outcomes(suite(latest, "rules: [worker-count]\n"), code=0) == ["  ok  it"]
        both = latest + "\n    expect: [{rule: images, action: warn, message: no tag}]"
        assert outcomes(suite(both), code=0) == ["  ok  it"]

    def test_unexpected_rejection_always_fails_the_test(self) -> None:
        case = suite(f'change: {{"{REPLICAS}": 9}}', "rules: [images]\n")
        assert "not expected: deny" in outcomes(case, code=1)[1]

    def test_expected_fields_are_compared_with_the_stored_job(self) -> None:
        stored = (
            "{spec.runPolicy.cleanPodPolicy: None,\n      metadata.labels.team: null,\n      spec.slotsPerWorker: null}"
        )
        assert outcomes(suite(f"stored: {stored}"), code=1)[1:] == [
            "    line 7: spec.runPolicy.cleanPodPolicy: expected None, the job has Running",
            "    line 9: spec.slotsPerWorker: expected nothing, the job has 2",
        ]

    def test_quiet_shows_only_failed_tests(self) -> None:
        lines = outcomes(TIER + "  - {name: ten, expect: [{rule: gpus}]}\n", "-q", code=1)
        assert [line for line in lines if "ok" in line] == []
        assert "  FAILED  ten" in lines


class TestFacts:
    def test_namespace_labels_select_policies(self) -> None:
        selected = HEADER + "namespaces: {matchLabels: {size: small}}\nrules: {worker-count: {max: 3}}\n"
        Path("tier.yaml").write_text(selected)
        rejected = "expect: [{rule: worker-count}]"
        assert outcomes(suite(rejected, "namespace: {labels: {size: small}}\n"), code=0)
        assert outcomes(suite("namespace: {name: other}", "namespace: {labels: {size: small}}\n"), code=0)
        Path("by-name.yaml").write_text(selected.replace("size: small", "kubernetes.io/metadata.name: team-a"))
        assert outcomes(suite(rejected).replace("tier.yaml", "by-name.yaml"), code=0)
        in_cluster = "{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {size: small}}}"
        assert outcomes(suite(f"cluster: [{in_cluster}]\n    {rejected}"), code=0)
        Path("cluster.yaml").write_text(in_cluster)
        assert outcomes(suite(rejected, "cluster: [cluster.yaml]\n"), code=0)

    def test_exemptions_depend_on_user_and_date(self) -> None:
        Path("tier.yaml").write_text(
            HEADER + "rules: {worker-count: {max: 3}}\n"
            "exemptions: [{rules: [worker-count], users: [ci], groups: [ops], expires: 2027-01-31, reason: OPS-42}]\n"
        )
        exempt = "expect: [{rule: worker-count, action: exempt}]"
        assert outcomes(suite(exempt, "user: {name: ci}\ndate: 2027-01-31\n"), code=0)
        assert outcomes(suite(exempt, "user: {name: eve, groups: [ops]}\ndate: 2027-01-31\n"), code=0)
        assert outcomes(suite("expect: [{rule: worker-count}]", "user: {name: ci}\ndate: 2027-02-01\n"), code=0)
        assert outcomes(suite("expect: [{rule: worker-count}]", "user: {name: eve}\ndate: 2027-01-31\n"), code=0)

    def test_annotation_exempts_a_job_only_if_the_user_may_exempt_jobs(self) -> None:
        case = (
            f'change:\n      {REPLICAS}: 9\n      metadata.annotations[training.openshift.io/exempt]: worker-count\n'
            "      metadata.annotations[training.openshift.io/exempt-reason]: OPS-43\n"
            "    expect: [{rule: worker-count, action: %s}]"
        )  # fmt: skip
        assert outcomes(suite(case % "exempt", "user: {name: eve, mayExempt: [worker-count]}\n"), code=0)
        assert outcomes(suite(case % "deny", "user: {name: eve}\n"), code=0)

    def test_job_that_exists_in_the_cluster_is_judged_as_an_update(self) -> None:
        changes = "change: {spec.slotsPerWorker: 1}\n    "
        running = changed({"status.conditions": [{"type": "Running", "status": "True"}]})
        Path("running.yaml").write_text(yaml.dump(running))
        updated = "cluster: [running.yaml]\n    expect: [{rule: update-safety, field: spec.slotsPerWorker}]"
        assert outcomes(suite(changes + updated, "rules: [update-safety]\n"), code=0)
        assert outcomes(suite(changes, "rules: [update-safety]\n"), code=0)

    def test_changes_of_one_test_do_not_affect_the_next_test(self) -> None:
        again = (
            "  - {name: again}\n"
            '  - {name: ten, change: {"metadata.labels.a": b}}\n'
            "  - {name: last, stored: {metadata.labels.a: null}}\n"
        )
        assert outcomes(TIER + again, code=0)[-1] == "  ok  last"


class TestPlaces:
    def test_folder_is_searched_recursively(self) -> None:
        Path("a/b").mkdir(parents=True)
        Path("a/.git").mkdir()
        text = HEAD + TIER.replace("[tier.yaml]", "[../../tier.yaml]").replace("job.yaml", "../../job.yaml")
        Path("a/b/t.yml").write_text(text)
        Path("a/.git/t.yaml").write_text(text)
        Path("a/broken.yaml").write_text("a: [")
        for arguments in ([], ["."], ["a"]):
            result = run(*arguments)
            assert result.exit_code == 0, result.output
            assert "2 tests: 2 passed" in result.stdout

    def test_tests_from_standard_input_are_run(self) -> None:
        result = run("-", stdin=HEAD + TIER)
        assert result.exit_code == 0
        assert result.stdout.startswith("standard input\n")

    def test_failure_in_the_second_document_has_its_line_in_the_file(self) -> None:
        Path("t.yaml").write_text(f"{HEAD}{TIER}---\n{HEAD}{TIER.replace('at most 8', 'at most 7')}")
        result = run("t.yaml")
        assert result.exit_code == 1
        assert "    line 21: expected but missing" in result.stdout

    def test_missing_tests_are_an_error(self) -> None:
        Path("empty").mkdir()
        no_test, no_file = run(), run("empty")
        assert (no_test.exit_code, no_test.stdout, no_file.exit_code, no_file.stdout) == (2, "", 2, "")
        assert no_test.stderr == "error: no test in this folder: none is a document of kind MPIJobPolicyTest\n"
        assert no_file.stderr == "error: empty: no .json, .yaml, .yml files in this directory\n"

    def test_unreadable_folder_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("t.yaml").write_text(HEAD + TIER)
        Path("locked").mkdir()
        Path(".hidden").mkdir()
        listdir = os.listdir

        def of_a_user(path: str) -> Any:
            if Path(path).name in {"locked", ".hidden"}:
                raise PermissionError(13, "Permission denied", path)
            return listdir(path)

        monkeypatch.setattr(os, "listdir", of_a_user)
        result = run(".")
        assert result.exit_code == 2
        assert result.stderr.endswith("locked: permission denied\n")

    def test_policy_validate_skips_documents_with_tests(self) -> None:
        Path("t.yaml").write_text(HEAD + TIER)
        result = checking.run("policy", "validate", ".")
        assert result.exit_code == 0, result.output
        assert "t.yaml: skipped MPIJobPolicyTest" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", ["t.yaml: line 2, column 1: did not find expected node content"]),
        ("", ["t.yaml: is empty; a test is a document of kind MPIJobPolicyTest"]),
        (
            "kind: Pod\n",
            ["t.yaml:1: is of kind Pod; a test is a document of kind MPIJobPolicyTest, "
             "apiVersion policy.training.openshift.io/v1"],
        ),
        (HEAD + "tests: []\n", ["t.yaml:1: policies: is missing", "t.yaml:3: tests: must have at least 1 entry"]),
        (
            HEAD + suite("", "rules: [gpus, worker-cuont, custom/few]\n"),
            ["t.yaml:5: rules[1]: no rule or injection is called worker-cuont; did you mean worker-count?",
             "t.yaml:5: rules[2]: no rule or injection is called custom/few"],
        ),
        (
            HEAD + "policies: [tier.yaml]\ntests: [{name: it}]\n",
            ["t.yaml:4: tests[0]: has no job: write one here, or at the start of the file for all tests"],
        ),
        (
            HEAD + suite("expect: []").replace("tier.yaml", "job.yaml"),
            ["t.yaml:3: policies[0]: no policy in job.yaml"],
        ),
    ],
)  # fmt: skip
def test_unusable_file_is_reported_with_its_line(text: str, expected: list[str]) -> None:
    assert errors(text) == expected


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("expected: []", "expected: is not a setting; did you mean expect?"),
        ("zzz: []", f"zzz: is not a setting; accepted: {', '.join(FIELDS)}"),
        (
            "expect: [{rule: gpus, action: refuse}]",
            'expect[0].action: must be deny, warn, audit, exempt or fault (it is "refuse")',
        ),
        (
            "change: {spec..x: 1}",
            "change: spec..x is not a path, such as spec.runPolicy.suspend or metadata.labels[team]",
        ),
        ("job: 3", "job: must be the name of a file, or the object itself (it is 3)"),
        ("job: nope.yaml", "job: nope.yaml: no such file or directory"),
        ("job: tier.yaml", "job: has 0 MPIJobs; a test needs exactly one"),
        ("cluster: [{kind: Node}]", "cluster[0]: a Node without apiVersion cannot be in a cluster"),
        ("date: x", 'date: must be a date such as 2027-01-31 (it is "x")'),
    ],
)
def test_unusable_test_is_reported_with_its_line(case: str, fault: str) -> None:
    assert errors(HEAD + suite(case)) == [f"t.yaml:7: tests[0].{fault}"]


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("change: {kind: Pod, apiVersion: v1}", "line 7: the change leaves no MPIJob"),
        ("change: {metadata.name.x: 1}", "line 7: metadata.name.x: there is a value before x, which has no fields"),
        (
            "cluster: [{apiVersion: v1, kind: Node, metadata: {name: a}, status: 3}]",
            'line 7: cluster: Node "a": status: must be a mapping, not a whole number',
        ),
    ],
)
def test_broken_test_is_reported_with_its_line(case: str, fault: str) -> None:
    assert outcomes(suite(case), code=2) == ["  FAILED  it", f"    {fault}"]


def test_a_broken_policy_is_reported_with_its_line() -> None:
    Path("tier.yaml").write_text(HEADER + "rules: {worker-count: {max: many}}\n")
    (error,) = errors(HEAD + suite("expect: []"))
    assert error.startswith("t.yaml:3: policies[0]: tier.yaml: line 3: rules.worker-count.max: ")


def test_valid_files_are_run_despite_broken_files() -> None:
    Path("a.yaml").write_text(HEAD + TIER)
    Path("b.yaml").write_text(HEAD + "tests: 3\n")
    result = run(".")
    assert result.exit_code == 2
    assert "2 tests: 2 passed" in result.stdout
    assert "error: b.yaml:3: tests: " in result.stderr


class TestForms:
    def shown(self, form: str) -> str:
        Path("t.yaml").write_text(HEAD + TIER.replace("at most 8", "at most 7"))
        result = run("t.yaml", "-o", form)
        assert result.exit_code == 1
        return result.stdout

    def test_json_output_has_verdicts_and_failures(self) -> None:
        report = json.loads(self.shown("json"))
        assert (report["passed"], report["failed"], report["errors"]) == (1, 1, [])
        eight, nine = report["tests"]
        assert eight == {
            "file": "t.yaml", "line": 6, "name": "eight", "passed": True, "failures": [], "verdict": [],
        }  # fmt: skip
        assert [failure["kind"] for failure in nine["failures"]] == ["expected-verdict-missing", "unexpected-verdict"]
        message = "9 workers, at most 8 allowed. Set replicas to 8 or fewer."
        assert nine["verdict"] == [{"rule": "worker-count", "action": "deny", "field": REPLICAS, "message": message}]

    def test_junit_output_has_each_failed_test(self) -> None:
        top = ET.fromstring(self.shown("junit"))
        assert top.attrib == {"name": "policy test", "tests": "2", "failures": "1", "errors": "0"}
        (failure,) = top.iter("failure")
        assert failure.get("type") == "expected-verdict-missing"
        assert (failure.text or "").count("\n") == 1

    def test_github_output_has_the_line_of_each_failure(self) -> None:
        first, _ = self.shown("github").splitlines()
        assert first == (
            '::error file=t.yaml,line=10,title=nine::expected but missing: deny "at most 7" [worker-count]'
        )

    @pytest.mark.parametrize("form", ["json", "junit", "github"])
    def test_broken_files_are_in_the_report(self, form: str) -> None:
        Path("t.yaml").write_text(HEAD + "tests: 3\n")
        result = run("t.yaml", "-o", form)
        assert result.exit_code == 2
        assert "policies" in result.stdout


def test_names_are_escaped_for_github() -> None:
    checked = Checked("a,b.yaml", "x: 100%\ny", 3, [Problem("r", "one\ntwo")])
    assert [*ci_reports.github([checked])] == ["::error file=a%2Cb.yaml,line=3,title=x%3A 100%25%0Ay::one%0Atwo"]


def test_ready_made_policies_pass_their_tests() -> None:
    result = run(str(MANIFESTS / "policies"))
    assert result.exit_code == 0, result.output


def test_every_ready_made_policy_has_tests() -> None:
    tested: set[str] = set()
    for path in (MANIFESTS / "policies").rglob("tests/*.yaml"):
        for document in yaml.load_all(path.read_text(encoding="utf-8")):
            named: list[Any] = document.get("policies", []) if document["kind"] == "MPIJobPolicyTest" else []
            tested |= {str((path.parent / name).resolve()) for name in named}
    policies = {
        str(path.resolve())
        for path in (MANIFESTS / "policies").rglob("*.yaml")
        if path.name != "kustomization.yaml" and path.parent.name != "tests"
    }
    assert policies <= tested
