"""Runs `mpijob-webhook` in the process of the test."""

import json
from collections.abc import Callable
from typing import Any

from click.testing import CliRunner, Result

from webhook.cli.main import main

POLICY = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
Check = Callable[..., Result]


def run(*arguments: str, stdin: str | bytes | None = None, **options: Any) -> Result:
    """The result of `mpijob-webhook` with these arguments. `options` are those of click's test runner."""
    return CliRunner().invoke(main, arguments, input=stdin, catch_exceptions=False, **options)


def as_json(result: Result) -> list[dict[str, Any]]:
    verdicts: list[dict[str, Any]] = json.loads(result.stdout)
    return verdicts
