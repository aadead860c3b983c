"""Shells complete command lines of the program, and kubectl completes command lines of its plug-in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checking import run
from tests.support.paths import MANIFESTS
from webhook.cli import kubectl_plugin

BIN = Path(sys.executable).parent
BASH = """
source <({bin}/mpijob-webhook completion bash)
COMP_WORDS=({words}) COMP_CWORD={last}
_mpijob_webhook_completion mpijob-webhook
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["mpijob-webhook", "completion", ""], ["bash", "zsh", "fish"]),
        (["mpijob-webhook", "policy", "val"], ["validate"]),
        (["mpijob-webhook", "check", "--fail-on", "w"], ["warn"]),
        (["mpijob-webhook", "explain", "worker-c"], ["worker-count"]),
    ],
)
def test_bash_completes_commands_and_options(words: list[str], offered: list[str]) -> None:
    script = BASH.format(bin=BIN, words=" ".join(f"'{word}'" for word in words), last=len(words) - 1)
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60, env=env)
    assert done.stdout.split() == offered


@pytest.mark.parametrize(
    ("shell", "start"), [("zsh", "#compdef mpijob-webhook\n"), ("fish", "function _mpijob_webhook")]
)
def test_completion_scripts_for_zsh_and_fish(shell: str, start: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert result.stdout.startswith(start)
    assert "_MPIJOB_WEBHOOK_COMPLETE" in result.stdout


def completed(*words: str) -> list[str]:
    program = BIN / "kubectl_complete-mpijob"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def test_kubectl_completes_commands_and_options() -> None:
    """The output has the format of cobra: https://github.com/kubernetes/kubernetes/pull/105867."""
    assert completed("policy", "au") == ["audit\tList the existing jobs that break the...", ":4"]
    assert completed("check", "--fail-on", "") == ["deny", "warn", ":4"]
    assert completed("check", "tr") == [":0"], "the shell completes names of files"
    assert completed("nothing", "x") == [":4"]
    assert completed("-n", "a", "w") == ["why\tSay why a job does not run.", ":4"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("-n a check x.yaml", "check -n a x.yaml"),
        ("--context=c --as u why x", "why --context=c --as u x"),
        ("check -n a x.yaml", "check -n a x.yaml"),
        ("-n a chekc", "chekc -n a"),
        ("-n a --help", "--help -n a"),
        ("-n", "-n"),
        ("", ""),
    ],
)
def test_options_before_the_command_are_moved_after_the_command(typed: str, meant: str) -> None:
    assert kubectl_plugin.ordered(typed.split()) == meant.split()


def test_plug_in_accepts_options_before_the_command() -> None:
    command = [BIN / "kubectl-mpijob", "-n", "team-a", "check", MANIFESTS / "examples" / "openmpi-pi.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "team-a/" in done.stdout) == (0, True), done.stderr


def test_help_has_the_name_of_the_plug_in(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.Context.formatter_class", kubectl_plugin.Formatter)
    monkeypatch.setattr(sys, "argv", ["kubectl-mpijob", "check", "--help"])
    with pytest.raises(SystemExit):
        kubectl_plugin.main()
    output = capsys.readouterr().out
    assert output.startswith("Usage: kubectl mpijob check [OPTIONS] FILE...")
    assert "\n    kubectl mpijob check job.yaml\n" in output
    assert "mpijob-webhook check" not in output


def test_error_has_the_name_of_the_plug_in() -> None:
    done = subprocess.run([BIN / "kubectl-mpijob", "chekc"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: kubectl mpijob [OPTIONS] COMMAND")
