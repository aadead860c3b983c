"""Every command that asks a cluster asks it as whom kubectl would."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.support.object_api import fake_api, kubeconfig
from tests.support.policies import HEADER
from webhook.cli.main import main

JOB = "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: a}\n"
COMMANDS = {
    "check": ("check", "job.yaml"),
    "diff": ("diff", "team-a/train"),
    "init": ("init", "--framework", "openmpi"),
    "snapshot": ("snapshot",),
    "doctor": ("doctor",),
    "certs status": ("certs", "status"),
    "policy effective": ("policy", "effective", "-n", "team-a"),
    "why": ("why", "team-a/train"),
    "policy replay": ("policy", "replay", "--policy", "policy.yaml"),
    "policy audit": ("policy", "audit"),
}


def with_a_cluster(group: click.Group, *above: str) -> list[str]:
    found = []
    for name, command in group.commands.items():
        path = (*above, name)
        if isinstance(command, click.Group):
            found += with_a_cluster(command, *path)
        elif any(parameter.name == "kubeconfig" for parameter in command.params):
            found.append(" ".join(path))
    return found


def test_all_commands_with_a_cluster_are_here() -> None:
    assert isinstance(main, click.Group)
    # The service is its service account, and the playground asks when a page asks it.
    assert set(with_a_cluster(main)) == {*COMMANDS, "serve", "playground"}


@pytest.mark.parametrize("command", COMMANDS)
def test_whom_to_impersonate(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(JOB)
    Path("policy.yaml").write_text(HEADER)
    with fake_api() as api:
        config = kubeconfig(tmp_path / "config", api.url)
        as_alice = ("--as", "alice", "--as-group", "ml", "--as-group", "ops", "--as-uid", "7")
        CliRunner().invoke(main, [*COMMANDS[command], "--kubeconfig", str(config), *as_alice])
        groups = [("Impersonate-Group", "ml"), ("Impersonate-Group", "ops")]
        assert api.impersonated
        assert all(
            each == [("Impersonate-User", "alice"), *groups, ("Impersonate-Uid", "7")] for each in api.impersonated
        )


@pytest.mark.parametrize("command", COMMANDS)
def test_more_about_whom_the_kubeconfig_names(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(JOB)
    Path("policy.yaml").write_text(HEADER)
    with fake_api() as api:
        users = [{"name": "u", "user": {"token": "t0ken", "as": "alice", "as-groups": ["hers"]}}]
        config = kubeconfig(tmp_path / "config", api.url, users=users)
        CliRunner().invoke(main, [*COMMANDS[command], "--kubeconfig", str(config), "--as-group", "ml"])
        assert api.impersonated
        expected = [("Impersonate-User", "alice"), ("Impersonate-Group", "ml")]
        assert all(each == expected for each in api.impersonated)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--as-group", "--as-uid"])
def test_more_about_nobody(command: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(JOB)
    Path("policy.yaml").write_text(HEADER)
    config = kubeconfig(tmp_path / "config", "https://127.0.0.1:1")
    result = CliRunner().invoke(main, [*COMMANDS[command], "--kubeconfig", str(config), option, "x"])
    assert result.exit_code == 2
    assert "it names groups, a uid or extra to impersonate, but no user: add --as or `as`" in result.stderr
