"""The commands `explain` and `rules`; what they explain is in test_explanations.py."""

import json

from click.testing import CliRunner, Result

from webhook.cli import explanations
from webhook.cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_rules() -> None:
    result = run("rules")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for entry in explanations.entries():
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
    assert {entry["id"] for entry in found["injections"]} == {
        e.id for e in explanations.entries() if e.kind == "injection"
    }


def test_explain() -> None:
    result = run("explain", "clean-pod-policy")
    assert result.exit_code == 0
    assert result.stdout.startswith("clean-pod-policy (rule, action: deny, since 0.1)\n\n")
    assert "\n\nclean-pod-policy (injection, default: on, since 0.1)\n\n" in result.stdout


def test_explain_something_unknown() -> None:
    result = run("explain", "worker_counts")
    assert result.exit_code == 2
    assert result.stdout == ""
    meant = "worker-count or worker-readiness or idle-workers"
    assert result.stderr == f'error: there is no rule or injection "worker_counts", did you mean {meant}?\n'
    result = run("explain", "\x1b[2Jqqqq")
    assert result.exit_code == 2
    assert result.stderr == (
        'error: there is no rule or injection "\N{REPLACEMENT CHARACTER}[2Jqqqq", `mpijob-webhook rules` lists them\n'
    )
