"""Runs one rule on the valid job with changes (`violations`) or on a whole job (`run`). `decide` runs all rules."""

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from tests.support.jobs import changed, request
from tests.support.policies import HEADER
from webhook.admission.decision import Decision
from webhook.admission.limits import MAX_WARNING_CHARACTERS
from webhook.admission.messages import Finding
from webhook.admission.pipelines import Policy, load_policy, validate
from webhook.api import mpijob
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.kit.context import Context
from webhook.predict.pod_template import decode_job
from webhook.rules import REGISTRY, Violation


def violations(
    rule_id: str,
    changes: Mapping[str, Any] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    old: Mapping[str, Any] | None = None,
    view: ClusterView | None = None,
) -> list[Violation]:
    """The rule's violations in the valid job with `changes`, which are as in `tests.support.jobs.changed`.

    `old` has the changes for the old job. If `old` is given, the operation is UPDATE. Other parameters are as in `run`.
    """
    before = None if old is None else changed(old)
    return run(rule_id, changed(changes), settings, old=before, view=view)


def run(
    rule_id: str,
    job: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    *,
    old: Mapping[str, Any] | None = None,
    view: ClusterView | None = None,
) -> list[Violation]:
    """The rule's violations in a whole job.

    `settings` are as in a policy. With `old`, the operation is UPDATE. Without `view`, the cluster is unknown.
    """
    rule = REGISTRY[rule_id]
    context = Context(
        operation="CREATE" if old is None else "UPDATE",
        namespace="team-a",
        username="alice",
        old=None if old is None else defaulted(old),
        document=json.dumps(job).encode(),
        old_document=json.dumps(old or {}).encode(),
        view=view or NothingKnown(),
    )
    return list(rule.check(defaulted(job), rule.settings.model_validate(settings or {}), context))


def decide(
    job: Any,
    policy: str | Policy = "",
    *,
    view: ClusterView | None = None,
    granted: Mapping[str, bool] | None = None,
    today: date = date.min,
    **sent: Any,
) -> Decision:
    """The decision of all rules on a whole job. If `policy` is text, it is a policy document without the header.

    `granted` has the user's permissions to exempt jobs. `sent` has other fields of the request.
    """
    rules = load_policy(HEADER + policy) if isinstance(policy, str) else policy
    return validate(request(job, **sent), policy=rules, view=view or NothingKnown(), today=today, granted=granted)


def defaulted(job: Any) -> mpijob.MPIJob:
    """The job with defaults, as rules see it."""
    return mpijob.apply_operator_defaults(decode_job(json.dumps(job).encode()))


def as_texts(result: list[Violation]) -> list[str]:
    """`path: message` for each violation. Advice is marked."""
    return [f"{'(advice) ' if v.advisory else ''}{v.path}: {v.message}" for v in result]


def fits_a_warning(rule_id: str, violation: Violation) -> bool:
    """Whether the violation is short enough to be a warning."""
    return len(f"{violation.path}: {Finding(rule_id, violation).sentence}") <= MAX_WARNING_CHARACTERS
