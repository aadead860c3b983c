"""What the tests of all rules share, besides `checks.violations`: whole jobs, and room in a warning."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.rule_checks import defaulted
from webhook.admission.messages import MAX_WARNING_LENGTH, Finding
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.kit.context import Context
from webhook.rules import REGISTRY, Violation


def run(
    rule_id: str, job: dict[str, Any], settings: Mapping[str, Any] | None = None, *, view: ClusterView | None = None
) -> list[Violation]:
    """What the rule finds in a whole job that is created; `settings` as an administrator writes them."""
    rule = REGISTRY[rule_id]
    context = Context(document=json.dumps(job).encode(), view=view or NothingKnown())
    return list(rule.check(defaulted(job), rule.settings.model_validate(settings or {}), context))


def fits_a_warning(rule_id: str, violation: Violation) -> bool:
    """Whether the violation is shown uncut when it only warns, as an advisory one always does."""
    return len(f"{violation.path}: {Finding(rule_id, violation).sentence}") <= MAX_WARNING_LENGTH
