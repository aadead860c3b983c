"""`policy new` writes a policy, and the first test of this policy."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import checking
from tests.support.jobs import changed
from webhook.api import yaml


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


run = partial(checking.run, "policy")


def first_tests(path: str) -> Any:
    (document,) = yaml.load_all(Path(path).read_text())
    return document["tests"]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--mode", "audit"),
        ("-l", "tier=dev", "--set", "rules.worker-count.max=3"),
        ("-l", "tier in (dev,test),!prod,team", "--set", "rules.images={allowedRegistries: [quay.io]}"),
        ("-l", "!prod", "--set", "rules.images.requireDigest=true"),
        ("--set", "rules.images.refuseLatest=null", "--inject-only", ""),
        ("--set", "injections.tolerations.enabled=true", "--set", "injections.tolerations.tolerations=[{key: a}]"),
        ("--set", "injections.labels.job[cost-centre]='4711'", "--set", "injections.job-timeout.default=1h"),
    ],
)
def test_written_policy_is_valid_and_its_test_passes(options: tuple[str, ...]) -> None:
    written = run("new", "first", *options, "--into", "policies")
    assert (written.exit_code, written.stderr) == (0, "")
    assert written.stdout == f"{Path('policies/first.yaml')}\n{Path('policies/tests/first.yaml')}\n"
    assert run("validate", "policies").exit_code == 0
    tested = run("test")
    assert tested.exit_code == 0, tested.output
    assert " passed, 0 failed" in tested.stdout
    assert run("new", "first", *options).stdout == Path("policies/first.yaml").read_text()


def test_first_test_expects_the_verdict_on_the_job() -> None:
    run("new", "first", "-l", "tier=dev", "--set", "rules.worker-count.max=3", "--set",
        "injections.node-selector={enabled: true, labels: {pool: a}}", "--into", ".")  # fmt: skip
    inside, outside = first_tests("tests/first.yaml")
    assert inside["namespace"] == {"labels": {"tier": "dev"}}
    assert inside["expect"] == [
        {"rule": "worker-count", "action": "deny", "field": "spec.mpiReplicaSpecs[Worker].replicas"}
    ]
    assert inside["stored"] == {
        "spec.mpiReplicaSpecs[Launcher].template.spec.nodeSelector.pool": "a",
        "spec.mpiReplicaSpecs[Worker].template.spec.nodeSelector.pool": "a",
    }
    assert outside == {"name": "the same job in another namespace"}


def test_first_test_of_the_sample_job_expects_no_finding() -> None:
    run("new", "first", "--into", ".")
    assert first_tests("tests/first.yaml") == [{"name": "a job where the policy is in force"}]


def test_first_test_uses_the_job_of_the_user() -> None:
    Path("job.yaml").write_text(yaml.dump(changed({"metadata.name": "mine"})))
    assert run("new", "first", "--job", "job.yaml", "--into", ".").exit_code == 0
    assert "name: mine" in Path("tests/first.yaml").read_text()
    assert run("test").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'NAME'"),
        (("a", "--set", "mode"), "--set mode: is not PATH=VALUE, such as rules.worker-count.max=8"),
        (("a", "--set", "rules..a=1"), "--set rules..a=1: is not a path, such as"),
        (("a", "--set", "mode=[a"), "a list in brackets is not closed"),
        (("a", "--set", "rules.worker-count.max=many"), "rules.worker-count.max: must be a whole number"),
        (("a", "--set", "rules.worker-counts.max=3"), "rules.worker-counts: is not a setting; did you"),
        (("a", "--set", "mode=warn", "--set", "mode.a.b=1"), "there is a value before a, which has no fields"),
        (("there", "--into", "."), "there.yaml exists already: use a different name or folder, or remove it"),
        (("a", "--into", "there.yaml"), "cannot write there.yaml"),
        (("a", "--job", "there.yaml"), "--job is for the first test, which needs a folder: add --into"),
        (("a", "--into", ".", "--job", "nope.yaml"), "nope.yaml: no such file or directory"),
        (("a", "--into", ".", "--job", "there.yaml"), "there.yaml has 0 MPIJobs; a test needs exactly one"),
    ],
)  # fmt: skip
def test_invalid_option_is_rejected_and_no_file_is_written(arguments: tuple[str, ...], message: str) -> None:
    Path("there.yaml").write_text("kind: Pod\n")
    result = run("new", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert [path.name for path in Path().rglob("*.yaml")] == ["there.yaml"]
