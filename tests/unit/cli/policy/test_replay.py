"""`policy replay -o markdown`."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.jobs import NO_TOKEN, changed
from tests.support.policies import HEADER, policy_configmap
from webhook.api import yaml
from webhook.cli.main import main

COMMAND = "Launcher.template.spec.containers.0.command"


def job(name: str, namespace: str, workers: int) -> dict[str, Any]:
    changes = {"metadata.name": name, "metadata.namespace": namespace, "Worker.replicas": workers}
    return changed({**NO_TOKEN, COMMAND: ["mpirun", "python"], **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a cluster of one policy and four jobs, and a new policy."""
    jobs = (
        job("train", "team-a", 9),
        job("small", "team-a", 2),
        job("train", "team-b", 9),
        job("a-b", "team-b", 9),
    )
    store(tmp_path, policy_configmap("rules: {gpus: {max: 8}}"), *jobs)
    (tmp_path / "tight.yaml").write_text(f"{HEADER}rules: {{worker-count: {{max: 4}}}}\n")
    return tmp_path


def store(folder: Path, *objects: dict[str, Any]) -> None:
    (folder / "cluster.yaml").write_text("---\n".join(yaml.dump(each) for each in objects))


def replay(folder: Path, *arguments: str) -> Result:
    given = ["policy", "replay", "--cluster", str(folder / "cluster.yaml"), *arguments]
    return CliRunner().invoke(main, given, catch_exceptions=False)


def test_affected_jobs_are_listed_by_rule_and_namespace(folder: Path) -> None:
    shown = replay(folder, "--policy", str(folder / "tight.yaml"), "-o", "markdown")
    assert shown.exit_code == 1
    assert shown.stdout.splitlines() == [
        "# The effect of changed policies on jobs",
        "",
        f"- now: platform (namespace mpijob-webhook of {str(folder).replace('_', chr(92) + '_')}/cluster.yaml)",
        "- then: platform, tight (new)",
        "",
        "**would newly deny 3 of 4 jobs: worker-count 3 (team-a/train, team-b/a-b, team-b/train)**",
        "",
        "## Refused, by rule and namespace",
        "",
        "| Rule | Namespace | New | Gone | As now | Jobs newly hit |",
        "| --- | --- | ---: | ---: | ---: | --- |",
        "| worker-count | team-b | 2 | 0 | 0 | a-b, train |",
        "| worker-count | team-a | 1 | 0 | 0 | train |",
    ]


def test_warnings_and_rejections_have_separate_tables(folder: Path) -> None:
    store(folder, policy_configmap("mode: warn"), job("one", "team-a", 1))
    shown = replay(folder, "--without", "platform", "-o", "markdown")
    assert shown.exit_code == 1
    assert "| worker-count | team-a | 1 | 0 | 0 | one |" in shown.stdout
    assert "## Warned about, by rule and namespace" in shown.stdout
    assert "| worker-count | team-a | 0 | 1 | 0 |  |" in shown.stdout


def test_names_of_users_are_escaped_in_markdown(folder: Path) -> None:
    store(folder, policy_configmap("rules: {gpus: {max: 8}}"), job("one", "a|b](x)", 9))
    shown = replay(folder, "--policy", str(folder / "tight.yaml"), "-o", "markdown")
    assert "| worker-count | a\\|b\\](x) | 1 | 0 | 0 | one |" in shown.stdout
