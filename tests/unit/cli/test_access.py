"""Every command that reads a cluster supports the impersonation options of kubectl."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.checking import Check
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
    paths = []
    for name, command in group.commands.items():
        path = (*above, name)
        if isinstance(command, click.Group):
            paths += with_a_cluster(command, *path)
        elif any(parameter.name == "kubeconfig" for parameter in command.params):
            paths.append(" ".join(path))
    return paths


def test_every_command_with_a_cluster_is_tested() -> None:
    assert isinstance(main, click.Group)
    # `serve` uses its service account, so it is not tested here.
    assert set(with_a_cluster(main)) == {*COMMANDS, "serve"}


@pytest.fixture
def request_headers(program: Check, tmp_path: Path) -> Iterator[Callable[..., list[list[tuple[str, str]]]]]:
    """Runs a command on a cluster and returns the impersonation headers of each of its requests."""
    with fake_api() as api:

        def run(command: str, *options: str, **more: Any) -> list[list[tuple[str, str]]]:
            config = str(kubeconfig(tmp_path / "config", api.url, **more))
            program(*COMMANDS[command], "--kubeconfig", config, *options, job_yaml=JOB, policy_yaml=HEADER)
            assert api.impersonated
            return api.impersonated

        yield run


@pytest.mark.parametrize("command", COMMANDS)
def test_impersonation_options_are_sent(command: str, request_headers: Callable[..., Any]) -> None:
    calls = request_headers(command, "--as", "alice", "--as-group", "ml", "--as-group", "ops", "--as-uid", "7")
    groups = [("Impersonate-Group", "ml"), ("Impersonate-Group", "ops")]
    assert all(call == [("Impersonate-User", "alice"), *groups, ("Impersonate-Uid", "7")] for call in calls)


@pytest.mark.parametrize("command", COMMANDS)
def test_options_override_the_user_of_the_kubeconfig(command: str, request_headers: Callable[..., Any]) -> None:
    users = [{"name": "u", "user": {"token": "t0ken", "as": "alice", "as-groups": ["hers"]}}]
    calls = request_headers(command, "--as-group", "ml", users=users)
    assert all(call == [("Impersonate-User", "alice"), ("Impersonate-Group", "ml")] for call in calls)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--as-group", "--as-uid"])
def test_options_as_group_and_as_uid_need_the_option_as(
    command: str, option: str, tmp_path: Path, program: Check
) -> None:
    config = str(kubeconfig(tmp_path / "config", "https://127.0.0.1:1"))
    result = program(*COMMANDS[command], "--kubeconfig", config, option, "x", job_yaml=JOB, policy_yaml=HEADER)
    assert result.exit_code == 2
    assert "it names groups, a uid or extra to impersonate, but no user: add --as or `as`" in result.stderr
