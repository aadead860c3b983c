"""All commands: help, version, colours and imports."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import webhook
from tests.support.checking import run
from tests.support.paths import EXAMPLES
from tools.reference import commands
from webhook import PROGRAM, __version__
from webhook.cli import version

PACKAGE = Path(webhook.__file__).parent
COMMANDS = dict(commands())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_is_complete(command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"Usage: main {command}" in result.stdout
    assert "Exit code:" in result.stdout or command in {"rules", "policy init", "policy schema"}
    assert f"mpijob-webhook {command.removesuffix(' mpijob')}" in result.stdout, "the help has an example"
    assert run(*command.split(), "-h").stdout == result.stdout
    options = [option for option in COMMANDS[command].params if isinstance(option, click.Option)]
    assert all(option.help for option in options)


@pytest.mark.parametrize("group", [(), ("policy",)])
def test_help_lists_every_command(group: tuple[str, ...]) -> None:
    result = run(*group, "--help")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.partition("Commands:\n")[2].splitlines()]
    within = [name.split() for name in COMMANDS]
    assert [line[0] for line in lines] == [name for *above, name in within if tuple(above) == group]
    assert not any(line[-1].endswith("...") for line in lines), "no summary is cut"


def test_output_of_version_has_python_and_commit_of_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, python, jobs = run("--version").stdout.splitlines()
    assert first == f"mpijob-webhook {__version__}"
    assert python.startswith(f"Python {sys.version.split()[0]}, ")
    assert jobs == "jobs of mpi-operator v0.8.0"
    (tmp_path / "build.json").write_text('{"commit": "0123abc"}')
    monkeypatch.setattr(version, "__file__", str(tmp_path / "cli" / "version.py"))
    assert run("--version").stdout.splitlines()[1] == "commit 0123abc"


def output_of(code: str) -> str:
    """The output of a new Python process that runs `code`."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout


def imported(arguments: list[str], modules: list[str]) -> str:
    """Return those of `modules` that a new process imports for a command, as the text of a list."""
    code = (
        f"import sys; from webhook.cli.main import main\ntry: main({arguments})\n"
        f"finally: print([name for name in {modules} if name in sys.modules])"
    )
    return output_of(code).splitlines()[-1]


SERVE = ["serve", "--policy", "/no/such/file", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"]
"""A command that ends after its imports."""
NETWORK = ["asyncio", "ssl", "aiohttp", "kubernetes", "cryptography", "prometheus_client", "structlog"]
DECISIONS = ["pydantic", "msgspec", "yaml", "webhook.rules"]
OTHERS = ["webhook.cli.doctor", "webhook.cli.serve", "webhook.installation"]
# Slow imports. pydantic would import importlib.metadata to search for plugins, but this search is switched off.
SLOW = ["importlib.metadata", "importlib.resources", "tempfile", "zipfile", "webhook.converters", "webhook.controllers"]
SLOW += ["webhook.parts.older_versions.older_jobs", "webhook.parts.sagemaker.job"]
ONLY_WITH_OPTIONS = ["webhook.parts.older_versions.reviews", "webhook.parts.trainer.pipeline"]
ONLY_WITH_A_CLUSTER = [
    "kubernetes", "webhook.installation.doctor", "webhook.parts.standing_audit.standing",
    "webhook.parts.job_metrics.deadline_events", "webhook.parts.disruption_budgets.upkeep",
    "webhook.parts.network_policies.upkeep", "webhook.controllers.ssh.removal",
    "webhook.server.certificates.self_managed",
]  # fmt: skip
JOB = str(EXAMPLES / "openmpi-pi.yaml")


@pytest.mark.parametrize(
    ("arguments", "not_needed"),
    [
        (["--help"], NETWORK + DECISIONS),
        (["check", "--help"], NETWORK + DECISIONS),
        (["policy", "replay", "--help"], NETWORK + DECISIONS),
        (["check", JOB], NETWORK + SLOW + OTHERS),
        (["explain", "istio"], NETWORK),
        (["policy", "init"], NETWORK),
        (SERVE, ONLY_WITH_A_CLUSTER + ONLY_WITH_OPTIONS),
    ],
)
def test_command_imports_only_needed_modules(arguments: list[str], not_needed: list[str]) -> None:
    assert imported(arguments, not_needed) == "[]"


def test_name_of_the_program_is_written_only_in_one_constant() -> None:
    """Docstrings may contain the name too, because some of them are help texts."""
    written = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if PROGRAM in "\n".join(texts(path))}
    assert written == {"__init__.py"}


def texts(path: Path) -> Iterator[str]:
    """The string literals of a module, without docstrings."""
    for node in ast.walk(ast.parse(path.read_text())):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str) and not isinstance(node, ast.Expr):
                yield child.value


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"NO_COLOR": ""}, {"NO_COLOR": None}])
def test_colours_need_a_terminal_and_are_disabled_by_the_variable_no_color(env: dict[str, str | None]) -> None:
    assert "\x1b" not in run("explain", "istio", env=env).stdout
    assert ("\x1b" in run("explain", "istio", color=True, env=env).stdout) is not bool(env["NO_COLOR"])


def test_unencodable_output_is_escaped(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text('{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: "\u4e00"}}', encoding="utf-8")
    env: dict[str, Any] = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-m", "webhook", "check", str(job)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)
    assert result.returncode == 1
    assert ": default/\\u4e00: rejected\n" in result.stdout
    assert result.stderr.startswith("not judged: ")


def test_imports_of_a_command_are_not_garbage_collected() -> None:
    code = (
        "import atexit, gc; from webhook.cli.main import main\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0, gc.get_stats()[0]['collections'] < 100))\n"
        f"main(['check', {JOB!r}])"
    )
    assert output_of(code).endswith("True True\n")


def test_garbage_collector_of_serve_ignores_imported_modules() -> None:
    code = (
        "import gc; from webhook.cli.main import main\n"
        f"try: main({SERVE})\n"
        "finally: print(gc.isenabled(), gc.get_freeze_count() > 50_000, gc.get_stats()[2]['collections'])"
    )
    assert output_of(code) == "True True 0\n"


def test_modules_for_the_given_options_are_imported_at_the_start() -> None:
    assert imported([*SERVE, "--conversion", "--trainer"], ONLY_WITH_OPTIONS) == str(ONLY_WITH_OPTIONS)
