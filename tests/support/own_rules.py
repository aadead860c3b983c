"""Questions about own rules, and policies that have some."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from tests.support.jobs import GOOD
from webhook.cel.worker import answer
from webhook.kit.own_rules import Expression, Outcome, Question, encode
from webhook.policy.in_force import Policy, load_policy


def question(
    *sources: str | Expression,
    submitted: Mapping[str, Any] = GOOD,
    old: Mapping[str, Any] | None = None,
    **variables: Any,
) -> Question:
    """A question about these expressions."""
    expressions = tuple(Expression(each) if isinstance(each, str) else each for each in sources)
    return Question(
        expressions, msgspec.Raw(json.dumps(submitted).encode()), msgspec.Raw(json.dumps(old).encode()), **variables
    )


def outcomes(*sources: str | Expression, **about: Any) -> list[Outcome]:
    """What comes of these expressions, worked out in this process."""
    return msgspec.json.decode(answer(encode(question(*sources, **about))), type=list[Outcome])


def rule(expression: str, **more: Any) -> dict[str, Any]:
    """An own rule as it is written."""
    return {"id": "mine", "message": "not like this", "expression": expression, **more}


def policy(*rules: Mapping[str, Any], **more: Any) -> Policy:
    """A policy with these own rules."""
    return load_policy(document(*rules, **more))


def document(*rules: Mapping[str, Any], **more: Any) -> str:
    """Its text."""
    head = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}
    return json.dumps({**head, **more, "rules": {**more.get("rules", {}), "custom": list(rules)}})
