"""`mpijob-webhook check` in a test."""

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

POLICY = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
Check = Callable[..., Result]


def as_json(result: Result) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = json.loads(result.stdout)
    return findings
