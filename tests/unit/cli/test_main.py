"""The command line: help, colours, addresses, exit codes; what `check` says is in test_check.py."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from webhook import __version__
from webhook.cli import explain
from webhook.cli.main import main
from webhook.cli.serve import AddressType
from webhook.server import process

COMMANDS = sorted(main.commands)


def run(*arguments: str, color: bool = False, env: dict[str, str | None] | None = None) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False, color=color, env=env)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Usage: main {command}" in result.stdout
    assert "Exit code:" in result.stdout or command == "rules"
    assert f"mpijob-webhook {command}" in result.stdout, "an example"
    assert run(command, "-h").stdout == result.stdout
    options = [option for option in main.commands[command].params if isinstance(option, click.Option)]
    assert all(option.help for option in options)


def test_help_names_every_command() -> None:
    result = run("--help")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.partition("Commands:\n")[2].splitlines()]
    assert [line[0] for line in lines] == COMMANDS
    assert not any(line[-1].endswith("...") for line in lines), "no summary is cut"


def test_version() -> None:
    assert run("--version").stdout == f"mpijob-webhook {__version__}\n"


def test_as_a_module_and_help_without_heavy_imports() -> None:
    code = (
        "import sys; from webhook.cli.main import main\n"
        "try: main(['--help'])\n"
        "finally: print([m for m in ('aiohttp', 'kubernetes', 'pydantic', 'msgspec', 'yaml') if m in sys.modules])"
    )
    quick = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert quick.stdout.endswith("[]\n")
    command = [sys.executable, "-m", "webhook", "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert version.stdout == f"mpijob-webhook {__version__}\n"


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"NO_COLOR": ""}, {"NO_COLOR": None}])
def test_colours_on_a_terminal_only_and_never_with_no_color(env: dict[str, str | None]) -> None:
    assert "\x1b" not in run("explain", "istio", env=env).stdout
    assert ("\x1b" in run("explain", "istio", color=True, env=env).stdout) is not bool(env["NO_COLOR"])


def test_rules() -> None:
    result = run("rules")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for entry in explain.entries():
        assert [entry.id, entry.default, *entry.summary.split()] in [line.split() for line in lines]
    assert lines[-1] == "`mpijob-webhook explain NAME` says more."


def test_rules_for_programs() -> None:
    found = json.loads(run("rules", "-o", "json").stdout)
    assert list(found) == ["rules", "injections"]
    assert {
        "id": "worker-count",
        "default": "deny",
        "summary": "The number of workers stays within what the cluster supports.",
        "since": "0.1",
    } in found["rules"]
    assert {entry["id"] for entry in found["injections"]} == {e.id for e in explain.entries() if e.kind == "injection"}


def test_explain() -> None:
    result = run("explain", "clean-pod-policy")
    assert result.exit_code == 0
    assert result.stdout.startswith("clean-pod-policy (rule, action: deny, since 0.1)\n\n")
    assert "\n\nclean-pod-policy (injection, default: on, since 0.1)\n\n" in result.stdout


def test_explain_something_unknown() -> None:
    result = run("explain", "worker_counts")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == 'error: there is no rule or injection "worker_counts", did you mean worker-count?\n'
    result = run("explain", "\x1b[2Jqqqq")
    assert result.exit_code == 2
    assert result.stderr == (
        'error: there is no rule or injection "\N{REPLACEMENT CHARACTER}[2Jqqqq", `mpijob-webhook rules` lists them\n'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8443", ("127.0.0.1", 8443)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:65535", ("::1", 65535)),
        ("[::]:1", ("::", 1)),
        ("example.com:443", ("example.com", 443)),
    ],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert AddressType().convert(text, None, None) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8443", '"8443" is not HOST:PORT, such as 127.0.0.1:8443 or [::1]:8443'),
        (":8443", '":8443" is not HOST:PORT, such as 127.0.0.1:8443 or [::1]:8443'),
        ("", '"" is not HOST:PORT, such as 127.0.0.1:8443 or [::1]:8443'),
        ("::1:80", '"::1:80" is ambiguous, write an IPv6 address in brackets: [::1]:80'),
        ("[::1]", '"[::1]" has no port from 0 to 65535 after its last colon'),
        ("host:", '"host:" has no port from 0 to 65535 after its last colon'),
        ("host:65536", '"host:65536" has no port from 0 to 65535 after its last colon'),
        ("host:" + "9" * 5000, None),
        ("host:-1", '"host:-1" has no port from 0 to 65535 after its last colon'),
        ("host:\N{FULLWIDTH DIGIT EIGHT}", None),
        ("[]:80", '"[]:80" is not HOST:PORT, such as 127.0.0.1:8443 or [::1]:8443'),
    ],
)
def test_what_is_no_address(text: str, message: str | None) -> None:
    with pytest.raises(click.BadParameter) as caught:
        AddressType().convert(text, None, None)
    assert message is None or caught.value.message == message
    result = run("serve", "--listen", text)
    assert result.exit_code == 2
    assert "Invalid value for '--listen'" in result.stderr


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[process.ServeSettings]:
    """The settings that `serve` was run with."""
    seen: list[process.ServeSettings] = []

    def run(settings: process.ServeSettings) -> int:
        seen.append(settings)
        return 3

    monkeypatch.setattr(process, "run", run)
    return seen


def test_serve_by_default(served: list[process.ServeSettings]) -> None:
    assert run("serve").exit_code == 3
    assert served == [process.ServeSettings(listen=("0.0.0.0", 8443), ops_listen=("0.0.0.0", 8081))]


def test_serve_register_stays_on_this_machine(served: list[process.ServeSettings]) -> None:
    run("serve", "--register")
    assert served == [process.ServeSettings(register=True, listen=("127.0.0.1", 0), ops_listen=("127.0.0.1", 0))]


def test_serve_with_every_option(served: list[process.ServeSettings]) -> None:
    files = {f"--{name}": name for name in ("kubeconfig", "policy", "tls-cert", "tls-key", "tls-ca", "ca-file")}
    numbers = {"--drain-seconds": "0", "--max-in-flight": "7", "--timeout": "2.5", "--log-level": "debug"}
    keys = {"--ssh-keys-ready": "9", "--ssh-keys-rate": "0.5"}
    addresses = {"--listen": "[::1]:1", "--ops-listen": "localhost:2"}
    certificates = {"--ca-secret": "ca", "--service": "webhook"}
    times = {"--ca-lifetime": "90d", "--leaf-lifetime": "1h", "--ca-grace": "30s"}
    namespaces = {"--policy-namespace": "policies", "--kueue-namespace": "queues"}
    options = files | numbers | keys | addresses | certificates | times | namespaces
    known = {option for parameter in main.commands["serve"].params for option in parameter.opts}
    assert known == {*options, "--register", "--remove-keys"}
    run("serve", "--register", "--remove-keys", *(text for pair in options.items() for text in pair))
    assert served == [
        process.ServeSettings(
            kubeconfig=Path("kubeconfig"),
            policy=Path("policy"),
            policy_namespace="policies",
            kueue_namespace="queues",
            register=True,
            tls_cert=Path("tls-cert"),
            tls_key=Path("tls-key"),
            tls_ca=Path("tls-ca"),
            ca_secret="ca",
            service="webhook",
            ca_lifetime=90 * 86_400,
            leaf_lifetime=3600,
            ca_grace=30,
            ca_file=Path("ca-file"),
            listen=("::1", 1),
            ops_listen=("localhost", 2),
            drain_seconds=0,
            max_in_flight=7,
            timeout_seconds=2.5,
            ssh_keys_ready=9,
            ssh_keys_rate=0.5,
            remove_keys=True,
            log_level="debug",
        )
    ]


@pytest.mark.parametrize(
    "option", ["--drain-seconds=-1", "--max-in-flight=0", "--timeout=x", "--log-level=loud", "--ssh-keys-rate=0"]
)
def test_serve_refuses_other_values(option: str, served: list[process.ServeSettings]) -> None:
    assert run("serve", option).exit_code == 2
    assert served == []


def test_output_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text('{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: "\u4e00"}}', encoding="utf-8")
    env: dict[str, Any] = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-m", "webhook", "check", str(job)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)
    assert result.returncode == 1
    assert ": default/\\u4e00: refused\n" in result.stdout
    assert result.stderr == ""
