"""Exemptions from rules, by the policy, or by the job's annotation if the requester may exempt jobs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

import msgspec
from msgspec import structs

from webhook import rules
from webhook.admission.messages import Finding, shorten
from webhook.admission.mutate import opt_out
from webhook.admission.validate import required_injections
from webhook.api.mpijob import MPIJob
from webhook.injections import Caution
from webhook.kit.context import Context
from webhook.kit.custom_rules import PREFIX, is_custom_id
from webhook.policy.document import PolicyDocument
from webhook.policy.exemptions import EVERY_RULE, REASON, Exemption, names_rule, requested_rules
from webhook.policy.in_force import Policy
from webhook.rules import Violation


class ExemptionVerdict(msgspec.Struct, frozen=True):
    """Whether a finding is exempted."""

    finding: Finding
    """The message says why an expired or requested exemption does not apply."""
    reason: str = ""
    """The reason for the exemption. Empty if the finding is not exempted."""
    requested: bool = False
    """Whether the exemption depends on the requester's right to exempt jobs from the rule."""


def excuse_for(
    finding: Finding,
    *,
    job: MPIJob,
    ctx: Context,
    policy: PolicyDocument,
    today: date,
    granted: Mapping[str, bool] | None,
) -> ExemptionVerdict:
    """Look for an exemption in the policy first, and then in the job's annotation."""
    ended: date | None = None
    for exemption in ctx.once(_concerned, policy) if policy.exemptions else ():
        if names_rule(exemption.rules, finding.rule):
            if not exemption.expired(today):
                return ExemptionVerdict(finding, reason=exemption.reason)
            ended = exemption.expires
    if ended is not None:
        finding = _noting(finding, f"the exemption from this rule ended on {ended}")
    if not names_rule(ctx.once(_requested, job), finding.rule):
        return ExemptionVerdict(finding)
    reason = job.annotations.get(REASON, "").strip()
    if not reason:
        return ExemptionVerdict(_noting(finding, f"an exemption needs the annotation {REASON} too"))
    if granted is None or finding.rule not in granted:
        return ExemptionVerdict(finding, requested=True)
    if granted.get(finding.rule):
        return ExemptionVerdict(finding, reason=shorten(reason))
    return ExemptionVerdict(_noting(finding, "you are not allowed to exempt a job from this rule"))


def for_injections(ctx: Context, job: MPIJob, policy: Policy) -> Context:
    """`ctx` without the minimum level of Pod Security if the job might be exempt from the rule `pod-security`.

    The pods of an exempt job can run as root. The validating webhook decides whether the exemption is valid.
    """
    if ctx.admitted.restricted_since is None:
        return ctx
    floor = Finding("pod-security", Violation("", "", ""))
    verdict = excuse_for(floor, job=job, ctx=ctx, policy=policy.document, today=date.min, granted=None)
    if not verdict.reason and not verdict.requested:
        return ctx
    return structs.replace(ctx, admitted=structs.replace(ctx.admitted, restricted_since=None))


def without_excused_limits(
    ctx: Context, job: MPIJob, policy: Policy, today: date, granted: Mapping[str, bool] | None
) -> Context:
    """`ctx` for advice, without the limits of rules from which the job is exempt."""
    document = policy.document
    if not document.exemptions and not ctx.once(_requested, job):
        return ctx
    anything = Violation("", "", "")
    verdicts = (
        (rule, excuse_for(Finding(rule, anything), job=job, ctx=ctx, policy=document, today=today, granted=granted))
        for rule in rules.REGISTRY  # custom rules set no limits
    )
    excused = frozenset(rule for rule, verdict in verdicts if verdict.reason)
    return structs.replace(ctx, admitted=policy.admitted_except(excused)) if excused else ctx


def cautions(job: MPIJob, ctx: Context) -> Iterator[Caution]:
    """Warnings about unknown rules in the job's annotation."""
    if not (requested := ctx.once(_requested, job)):
        return
    rule_ids = {*rules.REGISTRY, required_injections.RULE, EVERY_RULE, PREFIX}
    unknown = [entry for entry in requested if entry not in rule_ids and not is_custom_id(entry)]
    yield from opt_out.misplaced(unknown, opt_out.RULES, opt_out.INJECTIONS)


def _concerned(policy: PolicyDocument, ctx: Context) -> Sequence[Exemption]:
    groups = frozenset(ctx.groups)
    return [
        exemption
        for exemption in policy.exemptions
        if exemption.concerns(namespace=ctx.namespace, username=ctx.username, groups=groups)
    ]


def _requested(job: MPIJob, _: Context) -> dict[str, None]:
    return dict.fromkeys(requested_rules(job.annotations))


def _noting(finding: Finding, note: str) -> Finding:
    violation = finding.violation
    return replace(finding, violation=replace(violation, message=f"{violation.message} ({note})"))
