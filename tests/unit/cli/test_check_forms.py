"""`mpijob-webhook check` for CI: its forms, lines, patterns, and what ends with which code."""

import json
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from tests.support import published_schemas
from tests.support.checking import Check
from tests.support.jobs import GOOD, changed
from webhook.api import yaml
from webhook.cli.main import main

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
    """On which line a piece of text stands last."""
    return text[: text.rindex(piece)].count("\n") + 1


class TestGithub:
    def test_an_annotation_stands_at_the_field(self, check: Check) -> None:
        text = f"# first\n{CONFIG}---\n\n{ONE_WORKER}"
        result = check("jobs/a.yaml", "-o", "github", files={"jobs/a.yaml": text})
        assert result.exit_code == 1
        at = line(text, ONE)
        assert result.stdout == f"::error file=jobs/a.yaml,line={at},title=team-a/train::{TOLD}\n"

    def test_in_a_list(self, check: Check) -> None:
        text = yaml.dump({"apiVersion": "v1", "kind": "List", "items": [GOOD, changed({"Worker.replicas": 1})]})
        result = check("a.yaml", "-o", "github", files={"a.yaml": text})
        assert f"line={line(text, ONE)}," in result.stdout

    def test_what_is_not_there_is_told_where_it_belongs(self, check: Check) -> None:
        job = changed(
            {"Worker": None, "spec.mpiReplicaSpecs": {"Launcher": GOOD["spec"]["mpiReplicaSpecs"]["Launcher"]}}
        )
        text = yaml.dump(job)
        result = check("a.yaml", "-o", "github", files={"a.yaml": text})
        assert f"line={line(text, 'mpiReplicaSpecs')}," in result.stdout

    def test_warnings(self, check: Check) -> None:
        text = yaml.dump(SHORT_LIVED)
        result = check("a.yaml", "-o", "github", files={"a.yaml": text})
        assert result.exit_code == 0
        at = line(text, "ttlSecondsAfterFinished")
        assert result.stdout == f"::warning file=a.yaml,line={at},title=team-a/train::{TTL}\n"

    def test_standard_input_is_no_file(self, check: Check) -> None:
        result = check("-", "-o", "github", stdin=ONE_WORKER)
        assert result.stdout == f"::error title=team-a/train::{TOLD}\n"

    def test_a_file_that_cannot_be_read(self, check: Check) -> None:
        result = check("a.yaml", "-o", "github", files={"a.yaml": "a: 1\na: 2"})
        assert result.exit_code == 2
        assert result.stdout == ('::error file=a.yaml,title=the file::line 2, column 1: the key "a" is there twice\n')


class TestSarif:
    def log(self, result: Result) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(result.stdout)
        assert published_schemas.faults(published_schemas.SARIF, found) == []
        return found

    def test_results_and_their_rules(self, check: Check) -> None:
        files = {"a.yaml": ONE_WORKER, "b.yaml": yaml.dump(SHORT_LIVED), "c.yaml": JOB}
        result = check("a.yaml", "b.yaml", "c.yaml", "-o", "sarif", files=files)
        assert result.exit_code == 1
        (run,) = self.log(result)["runs"]
        driver = run["tool"]["driver"]
        assert [rule["id"] for rule in driver["rules"]] == ["retention", "worker-count"]
        assert (
            driver["rules"][1]["shortDescription"]["text"]
            == "The number of workers stays within what the cluster supports."
        )
        assert driver["rules"][1]["help"]["text"].endswith("`mpijob-webhook explain worker-count` says more.")
        refused, warned = run["results"]
        assert (refused["ruleId"], refused["level"]) == ("worker-count", "error")
        assert refused["message"]["text"] == f"team-a/train: {TOLD}"
        place = refused["locations"][0]["physicalLocation"]
        assert place == {
            "artifactLocation": {"uri": "a.yaml"},
            "region": {"startLine": line(ONE_WORKER, ONE)},
        }
        assert (warned["ruleId"], warned["level"]) == ("retention", "warning")

    def test_a_problem_is_known_again_when_it_moves(self, check: Check) -> None:
        def fingerprint(text: str) -> dict[str, str]:
            result = check("a.yaml", "-o", "sarif", files={"a.yaml": text})
            (found,) = self.log(result)["runs"][0]["results"]
            prints: dict[str, str] = found["partialFingerprints"]
            return prints

        before = fingerprint(ONE_WORKER)
        assert fingerprint(f"# a line more\n{ONE_WORKER}") == before
        assert fingerprint(yaml.dump(changed({"Worker.replicas": 1, "metadata.name": "other"}))) != before

    @pytest.mark.parametrize("text", [JOB, "]", yaml.dump({**GOOD, "spec": {}}), yaml.dump({**GOOD, "spec": 3})])
    def test_whatever_comes_is_sarif(self, check: Check, text: str) -> None:
        self.log(check("a.yaml", "-o", "sarif", files={"a.yaml": text}))

    def test_a_file_whose_name_is_no_text(self, check: Check) -> None:
        (run,) = self.log(check("\udcff #.yaml", "-o", "sarif", files={"\udcff #.yaml": ONE_WORKER}))["runs"]
        assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "%FF%20%23.yaml"}

    def test_pod_security_levels_too(self, check: Check) -> None:
        result = check("a.yaml", "--level", "restricted", "-o", "sarif", files={"a.yaml": JOB})
        assert result.exit_code == 1
        (run,) = self.log(result)["runs"]
        assert {found["ruleId"] for found in run["results"]} == {"pod-security"}
        assert all(found["locations"][0]["physicalLocation"]["region"]["startLine"] > 1 for found in run["results"])


class TestJunit:
    def suites(self, result: Result) -> ET.Element:
        return ET.fromstring(result.stdout)

    def test_a_suite_for_each_file_and_a_case_for_each_job(self, check: Check) -> None:
        files = {"a.yaml": f"{JOB}---\n{ONE_WORKER}", "b.yaml": JOB, "c.yaml": "]"}
        result = check("a.yaml", "b.yaml", "c.yaml", "-o", "junit", files=files)
        assert result.exit_code == 2
        top = self.suites(result)
        assert top.attrib == {"name": "check", "tests": "4", "failures": "1", "errors": "1"}
        assert [suite.get("name") for suite in top] == ["c.yaml", "a.yaml", "b.yaml"]
        good, bad = top[1]
        assert (good.get("line"), len(good)) == ("1", 0)
        (failure,) = bad
        assert (failure.tag, failure.get("type")) == ("failure", "worker-count")
        assert failure.text == f"a.yaml:{line(files['a.yaml'], ONE)}: {TOLD}"

    def test_warnings_are_output_unless_they_fail(self, check: Check) -> None:
        result = check("a.yaml", "-o", "junit", files={"a.yaml": SHORT_LIVED})
        assert result.exit_code == 0
        ((case,),) = self.suites(result)
        (output,) = case
        assert (output.tag, output.text) == ("system-out", f"warning: a.yaml:1: {TTL}")
        result = check("a.yaml", "-o", "junit", "--fail-on", "warn")
        assert result.exit_code == 1
        ((case,),) = self.suites(result)
        assert [child.tag for child in case] == ["failure"]


def test_yaml_is_what_json_is(check: Check) -> None:
    as_yaml = check("a.yaml", "-o", "yaml", files={"a.yaml": ONE_WORKER})
    assert as_yaml.exit_code == 1
    assert yaml.load_all(as_yaml.stdout) == [json.loads(check("a.yaml", "-o", "json").stdout)]


@pytest.mark.parametrize(
    ("job", "code"),
    [(GOOD, 0), (SHORT_LIVED, 1), (changed({"Worker.replicas": 1}), 1)],
)
def test_fail_on_warn(check: Check, job: dict[str, Any], code: int) -> None:
    """What was injected is no warning, although kubectl shows it as one."""
    assert check("a.yaml", "--fail-on", "warn", files={"a.yaml": job}).exit_code == code


def test_what_could_not_be_injected_fails_on_warn(check: Check) -> None:
    job = changed({"metadata.annotations": {"training.openshift.io/skip": "nothing"}})
    assert check("a.yaml", "--fail-on", "warn", files={"a.yaml": job}).exit_code == 1


@pytest.mark.parametrize("form", ["text", "github", "junit"])
def test_what_fails_for_a_warning_is_told_in_quiet_too(form: str, check: Check) -> None:
    files = {"good.yaml": GOOD, "a.yaml": SHORT_LIVED}
    result = check("good.yaml", "a.yaml", "-q", "-o", form, files=files)
    assert (result.exit_code, "retention" in result.stdout) == (0, False)
    result = check("good.yaml", "a.yaml", "-q", "--fail-on", "warn", "-o", form)
    assert (result.exit_code, "retention" in result.stdout) == (1, True)
    assert "good.yaml" not in result.stdout


@pytest.mark.parametrize("command", ["check a.yaml", "why", "diff", "snapshot", "policy audit", "policy effective"])
def test_a_namespace_as_kubectl_takes_it_is_not_another_one(command: str) -> None:
    result = CliRunner().invoke(main, [*command.split(), "-n=team-a"], catch_exceptions=False)
    assert (result.exit_code, '"=team-a" contains "="' in result.stderr) == (2, True)


class TestFiles:
    FILES: ClassVar = {
        "a/one.yaml": JOB, "a/b/two.yaml": JOB, "a/b/three.yml": JOB, "a/.hidden/four.yaml": "]", "a/b/five.txt": "]",
    }  # fmt: skip

    def sources(self, result: Result) -> list[str]:
        assert result.exit_code == 0, result.output
        return [verdict["file"] for verdict in json.loads(result.stdout)]

    def test_recursive(self, check: Check) -> None:
        found = check("-R", "a", "-o", "json", files=self.FILES)
        assert self.sources(found) == ["a/b/three.yml", "a/b/two.yaml", "a/one.yaml"]
        assert self.sources(check("a", "-o", "json")) == ["a/one.yaml"]

    def test_patterns(self, check: Check) -> None:
        assert self.sources(check("a/**/*.yaml", "-o", "json", files=self.FILES)) == ["a/b/two.yaml", "a/one.yaml"]
        assert self.sources(check("a/b/*", "-o", "json", files={"a/b/five.txt": JOB})) == [
            "a/b/five.txt", "a/b/three.yml", "a/b/two.yaml",
        ]  # fmt: skip

    def test_a_file_may_be_called_as_a_pattern(self, check: Check) -> None:
        assert self.sources(check("a[1].yaml", "-o", "json", files={"a[1].yaml": JOB, "a1.yaml": "]"})) == ["a[1].yaml"]

    def test_a_pattern_that_fits_nothing(self, check: Check) -> None:
        result = check("none/*.yaml")
        assert (result.exit_code, result.stderr) == (2, "error: none/*.yaml: fits no file\n")


class TestIgnoreOthers:
    OTHERS: ClassVar = {
        "package.json": {"name": "x"}, "values.yaml": "- MPIJob\n", "workflow.yaml": "name: an MPIJob\n",
        "broken.yaml": "]", "configmap.yaml": CONFIG, "list.json": "[1]",
        # YAML of others, and what is none, in which a job is just spoken of.
        "mkdocs.yml": "nav: [MPIJob.md]\nindex: !!python/name:material.emoji\n",
        ".gitlab-ci.yml": "MPIJob:\n  script: [!reference [.all, script]]\n",
        "settings.json": '// MPIJob\n{"a": 1}', "lines.json": '{"a": "MPIJob"}\n{"b": 2}\n',
    }  # fmt: skip

    def test_files_without_a_job_pass(self, check: Check) -> None:
        result = check(*self.OTHERS, "--ignore-others", "-q", files=self.OTHERS)
        assert (result.exit_code, result.output) == (0, "")
        assert check(*self.OTHERS).exit_code == 2

    def test_a_folder_without_any_file_passes(self, check: Check) -> None:
        assert check("d", "--ignore-others", files={"d/a.txt": "x"}).exit_code == 0

    def test_a_job_among_them_counts(self, check: Check) -> None:
        result = check(*self.OTHERS, "a.yaml", "--ignore-others", files={**self.OTHERS, "a.yaml": ONE_WORKER})
        assert result.exit_code == 1
        assert "1 job: 0 admitted, 1 refused" in result.stdout

    @pytest.mark.parametrize(
        "text", [f"{JOB}\n]", '{"kind":"MPIJob"', "kind:\n  MPIJob\nb: [", "'kind': MPIJob\nb: !x"]
    )
    def test_a_broken_file_with_a_job_does_not_pass(self, text: str, check: Check) -> None:
        result = check("a.yaml", "--ignore-others", files={"a.yaml": text})
        assert result.exit_code == 2

    def test_many_good_jobs_are_a_line_each(self, check: Check) -> None:
        jobs = {f"{number}.yaml": JOB for number in range(20)}
        result = check(*jobs, files=jobs)
        assert result.exit_code == 0
        assert len(result.stdout.splitlines()) == 22
        assert (
            result.stderr == "not judged: what depends on a cluster (none is known: see --kubeconfig and --cluster)\n"
        )

    @pytest.mark.parametrize("flags", [(), ("--ignore-others",)])
    @pytest.mark.parametrize("kind", ["MpiJob", "mpijob", "MPIJobs", "MPI-Job"])
    def test_a_kind_in_another_spelling_is_rejected(self, kind: str, flags: tuple[str, ...], check: Check) -> None:
        result = check("a.yaml", *flags, files={"a.yaml": ONE_WORKER.replace("kind: MPIJob", f"kind: {kind}")})
        assert result.exit_code == 1
        assert f'kind: "{kind}" is not supported [schema] (line 2)\n     Write MPIJob.\n' in result.stdout
        assert "1 worker, at least 2 required" in result.stdout, "in the same round"

    @pytest.mark.parametrize("flags", [(), ("--ignore-others",)])
    def test_an_api_version_in_another_spelling_is_rejected(self, flags: tuple[str, ...], check: Check) -> None:
        result = check("a.yaml", *flags, files={"a.yaml": ONE_WORKER.replace("apiVersion:", "apiversion:")})
        assert result.exit_code == 1
        assert "Rename it to apiVersion." in result.stdout
        assert "2 refused" not in result.stdout
        assert "1 worker, at least 2 required" in result.stdout, "in the same round"

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
    def test_a_job_in_another_encoding_does_not_pass(self, encoding: str, tmp_path: Path, check: Check) -> None:
        (tmp_path / "a.yaml").write_bytes(yaml.dump(GOOD).encode(encoding))
        result = check(str(tmp_path / "a.yaml"), "--ignore-others")
        assert (result.exit_code, "is not text" in result.stderr) == (2, True), result.output

    @pytest.mark.parametrize("kind", ["TrainJob", "ClusterTrainingRuntime"])
    def test_with_trainer_its_kinds_count_too(self, kind: str, check: Check) -> None:
        spec = {"mlPolicy": {"mpi": {"numProcPerNode": 1}}}
        written = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "spec": spec}
        result = check("a.yaml", "--ignore-others", "--trainer", "-o", "json", files={"a.yaml": written})
        assert [verdict["kind"] for verdict in json.loads(result.stdout)] == [kind]

    def test_a_file_that_is_not_there_does_not_pass(self, check: Check) -> None:
        assert check("none.yaml", "--ignore-others").exit_code == 2

    def test_a_level_is_about_all_kinds(self, check: Check) -> None:
        result = check("a.yaml", "--ignore-others", "--level", "restricted", files={"a.yaml": JOB})
        assert result.exit_code == 2
        assert "it takes no --policy, --cluster, --kubeconfig, --trainer or --ignore-others" in result.stderr


HELM = f"""\
---
# Source: train/templates/config.yaml
{CONFIG}---
# Source: train/templates/job.yaml
{ONE_WORKER}---
# Source: train/templates/empty.yaml
"""
KUSTOMIZE = f"{CONFIG}---\n{ONE_WORKER}"


@pytest.mark.parametrize("text", [HELM, KUSTOMIZE])
def test_what_helm_and_kustomize_print(check: Check, text: str) -> None:
    result = check("-", stdin=text)
    assert result.exit_code == 1
    assert "standard input: team-a/train: refused" in result.stdout
    assert result.stderr.startswith("standard input: passed over ConfigMap a\n")
