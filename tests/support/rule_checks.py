"""Running one rule on one job."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.jobs import changed
from webhook.api import mpijob
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.kit.context import Context
from webhook.rules import REGISTRY, Violation


def violations(
    rule_id: str,
    changes: Mapping[str, Any] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    old: Mapping[str, Any] | None = None,
    view: ClusterView | None = None,
) -> list[Violation]:
    """What the rule finds in the good job with `changes` (paths as in `tests.support.jobs.changed`).

    `settings` as an administrator writes them; with `old` (changes too) it is an UPDATE; without `view`
    nothing is known of the cluster.
    """
    rule = REGISTRY[rule_id]
    context = Context(
        operation="CREATE" if old is None else "UPDATE",
        namespace="team-a",
        username="alice",
        old=None if old is None else defaulted(changed(old)),
        document=json.dumps(changed(changes)).encode(),
        view=view or NothingKnown(),
    )
    return list(rule.check(defaulted(changed(changes)), rule.settings.model_validate(settings or {}), context))


def defaulted(job: Any) -> mpijob.MPIJob:
    """The job as rules see it."""
    return mpijob.apply_operator_defaults(mpijob.decode(json.dumps(job).encode()))


def found(result: list[Violation]) -> list[str]:
    """`path: message` of each violation, advisory ones marked."""
    return [f"{'(advice) ' if v.advisory else ''}{v.path}: {v.message}" for v in result]
