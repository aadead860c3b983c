"""`validate` collects the violations of a job."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from webhook.admission import messages, too_large
from webhook.admission.decision import Decision
from webhook.admission.messages import SCHEMA, Finding
from webhook.admission.request_context import context_of, name_of, old_job
from webhook.admission.skipping import (
    BY_CONTROLLER,
    only_claims,
    passes_unjudged,
    reason_to_check_nothing,
    reason_to_inject_nothing,
)
from webhook.admission.validate import custom_rules, exemptions, ratchet, rejected_gpus, required_injections
from webhook.api import mpijob, review
from webhook.api.mpijob import MPIJob
from webhook.api.shape import ShapeError
from webhook.cluster.view import ClusterView
from webhook.kit.context import Context
from webhook.kit.settings import Action, RuleSettings
from webhook.policy.exemptions import EXEMPT
from webhook.policy.in_force import Policy
from webhook.predict.pod_template import decode_job
from webhook.rules import CauseReason, Rule, Violation


def validate(
    request: review.AdmissionRequest,
    *,
    policy: Policy,
    view: ClusterView,
    today: date,
    granted: Mapping[str, bool] | None = None,
) -> Decision:
    """All violations in one decision.

    On UPDATE, a finding counts only if the update makes it worse (see `ratchet`). `today` is the date in UTC and
    decides which exemptions have expired.

    `granted` says for each rule whether the requester may exempt jobs from the rule. If `granted` lacks a rule,
    `Decision.requested` names the rule. The caller then checks the permission and calls `validate` again.
    """
    if reason := reason_to_check_nothing(request, policy, view):
        return Decision(name=request.name, skipped=reason)
    if large := too_large.finding(request.object):
        return _too_large(request, large, policy, view)
    try:
        job = decode_job(request.object)
    except ShapeError as error:
        return _wrong_shape(request.name, error, policy)
    job = mpijob.apply_operator_defaults(job)
    decision = Decision(name=name_of(request, job))
    old = old_job(request) if request.operation == "UPDATE" else None
    ctx = context_of(request, job, view, old, document=request.object, policy=policy)
    ctx = exemptions.without_excused_limits(ctx, job, policy, today, granted)
    ctx = custom_rules.evaluated(request, job, ctx, policy)
    decision.rule_faults = custom_rules.faults(ctx)
    before = None if old is None else custom_rules.of_stored(ctx, request.old_object)
    findings = messages.without_copies(list(_findings(policy.rules, job, ctx)), job)
    if findings and old is not None and before is not None:
        before = ratchet.judging_stored(before, job, old)
        stored_findings = (finding for finding, _ in _findings(policy.rules, old, before))
        findings = ratchet.worse(findings, job, stored_findings, old)
    findings += _missing(request, job, policy, ctx)
    for finding, action in findings:
        leads_to = action.at_most(finding.violation.ceiling)
        outcome = exemptions.excuse_for(finding, job=job, ctx=ctx, policy=policy.document, today=today, granted=granted)
        if outcome.reason:
            decision.exempted.append((finding, outcome.reason))
            continue
        if outcome.requested and leads_to is Action.DENY:
            decision.requested.append(finding.rule)
        decision.add(outcome.finding, leads_to)
    if cautions := list(exemptions.cautions(job, ctx)):
        decision.told[EXEMPT] = [*cautions]
    if decision.denied:
        decision.denied = messages.told_once(decision.denied)
        decision.refused_gpus = rejected_gpus.of(decision, job, ctx)
    decision.put_worst_first()
    for reserves in policy.reserves:
        decision.reservation = reserves(job, ctx)
    return decision


def _too_large(request: review.AdmissionRequest, large: Finding, policy: Policy, view: ClusterView) -> Decision:
    """Reject the object regardless of actions and exemptions. An unchanged stored object passes."""
    decision = Decision(name=request.name)
    if passes_unjudged(request, policy, view):
        decision.skipped = too_large.AS_STORED
    else:
        decision.add(large, policy.document.ceiling)
    return decision


def _findings(
    rules: Sequence[tuple[Rule, RuleSettings, Action]], job: MPIJob, ctx: Context
) -> Iterator[tuple[Finding, Action]]:
    for rule, settings, action in rules:
        for violation in rule.check(job, settings, ctx):
            yield Finding(rule.id, violation), action


def _missing(
    request: review.AdmissionRequest, job: MPIJob, policy: Policy, ctx: Context
) -> list[tuple[Finding, Action]]:
    """Findings about missing required injections.

    Some jobs get no injections, for example jobs with an owner. Any user can write an owner into a job. The owner
    therefore counts only if the requester is a controller that the policy names.
    """
    if not policy.required:
        return []
    reason = reason_to_inject_nothing(request, job, ctx.old, policy, ctx.view)
    if reason == BY_CONTROLLER:
        reason = ""
    if reason and not only_claims(request, reason, policy, ctx.view):
        return []
    return list(
        required_injections.missing(policy, ctx, claimed=reason, stored=request.old_object if ctx.old else None)
    )


def _wrong_shape(name: str, error: ShapeError, policy: Policy) -> Decision:
    violation = Violation(error.path, error.message, fix="Correct the value.", reason=CauseReason.INVALID)
    decision = Decision(name=name)
    decision.add(Finding(SCHEMA, violation), policy.document.ceiling)
    return decision
