"""Integrations for CI systems: the pre-commit hook, the GitHub action, and the files in docs/ci.md."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from pre_commit import clientlib

from tests.support import published_schemas
from tests.support.jobs import GOOD, changed
from tests.support.paths import DOCS, ROOT
from webhook.api import yaml
from webhook.cli.main import main

BAD: Final = yaml.dump(changed({"Worker.replicas": 1}))
(ACTION,) = yaml.load_all((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALL, CHECK = ACTION["runs"]["steps"]


def test_hook_definition_is_valid_for_pre_commit(tmp_path: Path) -> None:
    (hook,) = clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    program, *arguments = [*shlex.split(hook["entry"]), *hook["args"]]
    assert program == "mpijob-webhook"
    (tmp_path / "package.json").write_text("[]")
    result = CliRunner().invoke(main, [*arguments, str(tmp_path / "package.json")], catch_exceptions=False)
    assert (result.exit_code, result.output) == (0, "")


def test_file_with_the_name_of_an_option_is_read_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pre-commit passes the arguments of the hook or of the user, followed by paths relative to the repository."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text("apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n")
    for name in ("--x.yaml", "--policy=mine.yaml"):
        (tmp_path / name).write_text(BAD)
    (hook,) = clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    (repo,) = shown(".pre-commit-config.yaml")["repos"]
    for arguments in (hook["args"], repo["hooks"][0]["args"]):
        called = [*shlex.split(hook["entry"])[1:], *arguments, "--x.yaml", "--policy=mine.yaml"]
        result = CliRunner().invoke(main, called, catch_exceptions=False)
        assert result.exit_code == 1, result.output
        for name in ("--x.yaml", "--policy=mine.yaml"):
            assert f"{name}: team-a/train: rejected" in result.output


def shown(name: str) -> Any:
    """The parsed YAML block of docs/ci.md that begins with this file name."""
    text = (DOCS / "ci.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"```yaml\n# {re.escape(name)}\n(.*?)```", text, re.DOTALL)
    (document,) = yaml.load_all(block)
    return document


def test_pre_commit_configuration_in_the_page_is_valid() -> None:
    config = shown(".pre-commit-config.yaml")
    (repo,) = config["repos"]
    (hook,) = clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    assert repo["hooks"][0]["id"] == hook["id"]


def test_action_is_valid_for_github() -> None:
    assert published_schemas.faults(published_schemas.GITHUB_ACTION, ACTION) == []


def test_packages_of_the_action_are_locked() -> None:
    """Without build isolation, pip uses the locked build tools. With isolation, pip would download
    other versions.

    `--only-binary` is necessary because the lock files also have hashes of source distributions.
    """
    locks, package = INSTALL["run"].partition("install --quiet --no-deps")[::2]
    assert locks.count("--require-hashes --only-binary=:all:") == locks.count("--requirement") == 2
    assert re.findall(r"requirements/(\w+)\.txt", locks) == ["build", "run"]
    assert "--no-build-isolation" in package


def test_modules_of_the_users_repository_are_not_run(tmp_path: Path) -> None:
    """The working directory of a runner is the user's repository, and `python -m` looks for modules there."""
    (tmp_path / "venv.py").write_text("open('made', 'w')")
    (command,) = [line for line in INSTALL["run"].splitlines() if "-m venv" in line]
    env = {**os.environ, "RUNNER_TEMP": str(tmp_path / "temp")}
    subprocess.run(["bash", "-e", "-c", command], cwd=tmp_path, env=env, check=True, timeout=120)
    assert not (tmp_path / "made").exists()
    assert (tmp_path / "temp" / "mpijob-webhook" / "bin" / "python3").exists()


def test_scripts_read_inputs_only_from_the_environment() -> None:
    assert "${{" not in INSTALL["run"] + CHECK["run"]
    used = re.findall(r"\$\{\{ inputs\.([a-z-]+) \}\}", json.dumps(CHECK["env"]))
    assert sorted(used) == sorted(ACTION["inputs"])


def test_action_in_the_page_has_valid_inputs() -> None:
    steps = shown(".github/workflows/mpijobs.yaml")["jobs"]["mpijobs"]["steps"]
    (step,) = [step for step in steps if "mpijob-webhook" in step["uses"]]
    assert set(step["with"]) <= set(ACTION["inputs"])


def run_action(folder: Path, inputs: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Do what a runner does for the step that checks files."""
    program = folder / "temp" / "mpijob-webhook" / "bin" / "mpijob-webhook"
    program.parent.mkdir(parents=True)
    program.symlink_to(Path(sys.executable).with_name("mpijob-webhook"))
    given = {name: inputs.get(name, about["default"]) for name, about in ACTION["inputs"].items()}
    env = {name: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: given[found[1]], value)
           for name, value in CHECK["env"].items()}  # fmt: skip
    work = folder / "work"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", CHECK["run"]],
        cwd=work, env={**os.environ, "RUNNER_TEMP": str(folder / "temp"), **env}, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"jobs/good.yaml": yaml.dump(GOOD), "a b/bad.yaml": BAD, "package.json": "{}"}.items():
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_action_shows_violations_and_fails(folder: Path) -> None:
    done = run_action(folder, {})
    assert done.returncode == 1, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("::error file=a b/bad.yaml,line=")


def test_action_reads_one_file_per_line(folder: Path) -> None:
    done = run_action(folder, {"files": "jobs\n\npackage.json\n"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_input_is_never_executed(folder: Path) -> None:
    done = run_action(folder, {"files": "$(touch made)\n'; touch made"})
    assert done.returncode == 2
    assert not (folder / "work" / "made").exists()


def test_gitlab_job_in_the_page_is_valid_and_reports_violations(folder: Path) -> None:
    config = shown(".gitlab-ci.yml")
    assert published_schemas.faults(published_schemas.GITLAB_CI, config) == []
    job = config["mpijobs"]
    (folder / "work" / "policy.yaml").write_text("apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n")
    (line,) = job["script"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder / "work", env={**os.environ, "PATH": path}, check=False, timeout=120
    )
    assert done.returncode == 1
    assert 'failures="1"' in (folder / "work" / job["artifacts"]["reports"]["junit"]).read_text()
