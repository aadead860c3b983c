"""Evaluates expressions of custom rules, and makes policies with custom rules."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from tests.support.jobs import GOOD
from webhook.cel.evaluation import evaluate
from webhook.kit.custom_rules import Expression, Outcome, Variables
from webhook.policy.in_force import Policy, load_policy


def variables(submitted: Mapping[str, Any] = GOOD, old: Mapping[str, Any] | None = None, **others: Any) -> Variables:
    new, stored = (msgspec.Raw(json.dumps(job).encode()) for job in (submitted, old))
    return Variables(new, stored, **others)


def outcomes(*sources: str | Expression, **about: Any) -> list[Outcome]:
    expressions = [Expression(each) if isinstance(each, str) else each for each in sources]
    return [*evaluate(expressions, variables(**about))]


def rule(expression: str, **more: Any) -> dict[str, Any]:
    """A custom rule as an administrator writes it."""
    return {"id": "mine", "message": "not like this", "expression": expression, **more}


def policy(*rules: Mapping[str, Any], **more: Any) -> Policy:
    return load_policy(document(*rules, **more))


def document(*rules: Mapping[str, Any], **more: Any) -> str:
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}
    return json.dumps({**head, **more, "rules": {**more.get("rules", {}), "custom": list(rules)}})
