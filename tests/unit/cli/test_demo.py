"""The command `demo`."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from hypothesis import given

from tests.support import checking
from tests.support.any_job import jobs
from tests.support.jobs import GOOD, changed, request
from tests.support.paths import EXAMPLES
from tests.support.strategies import PROPERTY
from webhook.admission import pipelines
from webhook.cli import files, walkthrough
from webhook.cluster.view import NothingKnown

FILES = sorted(EXAMPLES.glob("*.yaml"))


run = partial(checking.run, "demo")


def test_examples_have_the_expected_verdicts() -> None:
    result = run()
    assert result.exit_code == 0
    assert result.stderr == ""
    shown = result.stdout.splitlines()
    typed = [line for line in shown if line.startswith("$ ")]
    assert all(path.name in result.stdout for path in FILES)
    assert ["bad-" in line for line in (typed[0], typed[-1])] == [True, False], "rejections first"
    assert sum(-(-len(line) // 80) or 1 for line in shown) <= 48, "two screens of 24 rows and 80 columns"
    bad = sum(path.name.startswith("bad-") for path in FILES)
    assert f"\n{len(FILES)} jobs: {len(FILES) - bad} admitted, {bad} rejected\n" in result.stdout
    assert "What to try next:\n" in result.stdout


def test_admitted_job_is_shown_like_in_kubectl() -> None:
    result = run(str(EXAMPLES / "openmpi-pi.yaml"))
    assert result.exit_code == 0
    before, _, after = result.stdout.partition("mpijob.kubeflow.org/openmpi-pi created\n")
    assert "== openmpi-pi.yaml\n# Pi on two workers with Open MPI." in before
    assert "$ kubectl apply -f openmpi-pi.yaml\nWarning: injected: job-timeout 24h, api-access, " in before
    assert after.startswith("\nInjected into the job in the cluster:\n")
    assert "  + spec.runPolicy.cleanPodPolicy: Running\n" in after
    assert "slotsPerWorker:" not in after, "unchanged fields are left out"
    assert all(len(line) <= 120 for line in after.splitlines()), "lines are cut"
    assert "\n1 job: 1 admitted, 0 rejected\n" in after


def test_rejected_job_is_shown_like_in_kubectl() -> None:
    result = run(str(EXAMPLES / "bad-one-worker.yaml"))
    assert result.exit_code == 0
    assert (
        "$ kubectl apply -f bad-one-worker.yaml\n"
        "Warning: injected: job-timeout 24h, api-access, clean-pod-policy, istio, labels, launcher-wait, mpi-env"
        "; a failed launcher's log is deleted without restartPolicy: Never\n"
        'The MPIJob "one-worker" is invalid:\n'
        "* spec.mpiReplicaSpecs[Launcher].replicas: is 2, there is always one launcher. Set replicas to 1. "
        "[upstream-contract] (and 1 more)\n"
        "* spec.mpiReplicaSpecs[Worker].replicas: 1 worker, at least 2 required. Set replicas to 2 or more. "
        "[worker-count]\n"
    ) in result.stdout
    assert "what was injected" not in result.stdout


def test_single_problem_is_on_one_line_like_in_kubectl() -> None:
    job = changed({"metadata.name": "a.b"})
    result = run("-", stdin=json.dumps(job))
    assert result.exit_code == 0
    assert "\n== -\n$ kubectl apply -f -\nWarning: injected: " in result.stdout
    assert '\nThe MPIJob "a.b" is invalid: metadata.name: the last worker' in result.stdout


def test_example_with_an_unexpected_verdict_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(walkthrough, "EXAMPLES", (tmp_path / "none", tmp_path))
    (tmp_path / "bad-job.yaml").write_text(json.dumps(GOOD))
    (tmp_path / "job.yaml").write_text(json.dumps(changed({"Worker.replicas": 1})))
    result = run()
    assert result.exit_code == 1
    assert f"unexpected: {tmp_path}/job.yaml was rejected\n" in result.stdout
    assert f"unexpected: {tmp_path}/bad-job.yaml was admitted\n" in result.stdout


@pytest.mark.parametrize("job", [{**GOOD, "apiVersion": "kubeflow.org/v1"}, changed({"Worker.replicas": "4"})])
def test_job_that_cannot_be_decoded_is_shown_as_rejected(job: dict[str, Any]) -> None:
    result = run("-", stdin=json.dumps(job))
    assert result.exit_code == 0
    assert "[schema]" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "stdin", "error"),
    [
        (["none.yaml"], None, "none.yaml: no such file or directory"),
        (["-"], "kind: Pod", "no MPIJob in -"),
        (["-"], "]", "standard input: line 1, column 1: did not find expected node content"),
        (["-"], json.dumps(changed({"x": "x" * 8 * 2**20})), "standard input: the webhook answered 413: "),
    ],
)
def test_unusable_input_is_an_error(arguments: list[str], stdin: str | None, error: str) -> None:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {error}")
    assert result.stderr.count("\n") == 1


def test_service_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walkthrough, "LOOPBACK", ("192.0.2.1", 0))
    result = run(str(EXAMPLES / "openmpi-pi.yaml"))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: cannot listen on 192.0.2.1:0: ")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_starts_with_a_comment(path: Path) -> None:
    first, *_ = path.read_text().splitlines()
    assert first.startswith("# Wrong" if path.name.startswith("bad-") else "# ")
    assert [manifest.kind for manifest in files.load([str(path)])[0]] == ["MPIJob"]


@PROPERTY
@given(jobs())
def test_patch_is_applied_like_a_json_patch(job: dict[str, Any]) -> None:
    decision = pipelines.mutate(request(job), policy=pipelines.load_policy(None), view=NothingKnown())
    assert walkthrough.apply(job, decision.patch) == jsonpatch.apply_patch(job, decision.patch)


def test_patch_of_lists_and_escaped_keys_is_applied() -> None:
    operations = [
        {"op": "add", "path": "/a~1b/~0", "value": 1},
        {"op": "add", "path": "/l/-", "value": 3},
        {"op": "add", "path": "/l/0", "value": 0},
        {"op": "add", "path": "/l/1/x", "value": 1},
    ]
    before: dict[str, Any] = {"a/b": {}, "l": [{}]}
    assert walkthrough.apply(before, operations) == {"a/b": {"~": 1}, "l": [0, {"x": 1}, 3]}
    assert before == {"a/b": {}, "l": [{}]}
