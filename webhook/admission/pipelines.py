"""The two pipelines: mutate(request) and validate(request). Pure: given request, policy and cluster view.

They raise ReviewError for an object that is not JSON.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final, Literal

import msgspec
from msgspec import structs

from webhook import injections
from webhook.admission import (
    excuse,
    left_alone,
    messages,
    opt_out,
    overlooked,
    own_rules,
    preempted,
    ratchet,
    refused_gpus,
    required,
    restore,
    too_large,
)
from webhook.admission.decision import QUOTA_RULE, Decision, is_quiet
from webhook.admission.left_alone import (
    BY_CONTROLLER,
    only_claims,
    passes_unjudged,
    reason_to_check_nothing,
    reason_to_inject_nothing,
)
from webhook.admission.messages import SCHEMA, Finding
from webhook.api import annotations, document, mpijob, review, untyped
from webhook.api.mpijob import MPIJob
from webhook.api.review import AdmissionRequest
from webhook.api.shape import ShapeError
from webhook.api.untyped import at
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import ClusterView
from webhook.kit.context import Context
from webhook.kit.patch import PatchBuilder, PatchConflict, Path
from webhook.kit.settings import Action, RuleSettings
from webhook.policy.exemptions import ASKED
from webhook.policy.in_force import Policy, PolicySet, load_policy, policy_model
from webhook.predict.pod_template import decode_job
from webhook.predict.quota.assessment import reservation_of
from webhook.rules import CauseReason, Rule, Violation

Hook = Literal["mutate", "validate"]


def decide(
    hook: Hook,
    request: AdmissionRequest,
    *,
    policies: PolicySet,
    view: ClusterView,
    today: date,
    time_left: Callable[[], float],
    granted: Mapping[str, bool] | None = None,
) -> Decision:
    """The decision of the pipeline behind `hook`, for every kind of review that a configuration could send here."""
    kind = request.kind
    if request.operation not in {"CREATE", "UPDATE"}:
        return Decision(skipped="not a CREATE or UPDATE", name=request.name)
    if (kind.group, kind.kind) != (mpijob.GROUP, "MPIJob"):
        return Decision(skipped="not an MPIJob", name=request.name)
    if f"{kind.group}/{kind.version}" != mpijob.API_VERSION:
        if hook == "mutate":
            return Decision(skipped="another API version", name=request.name)
        return Decision(denied=[left_alone.finding(f"{kind.group}/{kind.version}")], name=request.name)
    namespace = view.get(NAMESPACES, request.namespace)
    policy = policies.for_namespace(namespace)
    if hook == "mutate":
        decision = mutate(request, policy=policy, view=view)
    else:
        decision = validate(request, policy=policy, view=view, today=today, granted=granted, time_left=time_left)
    decision.policy = policy.identity
    return decision


_LIST_OF_INJECTIONS: Final[Path] = ("metadata", "annotations", annotations.INJECTED)
# Seconds reserved for writing the reply.
RESERVE = 0.05


class DeadlineExceeded(Exception):
    """The API server no longer waits for the verdict."""


def mutate(request: review.AdmissionRequest, *, policy: Policy, view: ClusterView) -> Decision:
    """Inject what the job needs. Never denies: an object of a wrong shape is left to the API server's schema.

    On UPDATE only values come back that the stored job has and an injection can write (see `restore`): `kubectl apply`
    replaces whole lists of a custom resource, and Kueue stops a running job whose containers change.
    """
    request = structs.replace(request, object=document.without_status(request.object))
    if too_large.finding(request.object) or (request.operation == "UPDATE" and too_large.finding(request.old_object)):
        return Decision(name=request.name, skipped=too_large.TOO_LARGE)
    stored = None
    try:
        job, written = document.decode(request.object)
        ctx = _context(request, job, view, old=None, document=request.object, policy=policy)
        builder = PatchBuilder(written)
        if request.operation == "UPDATE":
            stored = untyped.decode(request.old_object)
    except (ShapeError, msgspec.DecodeError, UnicodeDecodeError) as error:
        review.confirm(request)
        return Decision(skipped=f"schema: {error}"[:200], name=request.name)
    old = _old(request) if request.operation == "UPDATE" else None
    decision = Decision(name=_name(request, job), skipped=reason_to_inject_nothing(request, job, old, policy, view))
    decision.warned = preempted.findings(job)
    decision.injection_warnings = policy.document.injection_warnings
    if decision.skipped and not only_claims(request, decision.skipped, policy, view):
        return decision
    if decision.skipped and old is None:  # an update injects nothing new
        policy = _unskippable(policy)
    try:
        if request.operation == "UPDATE":

            def inject(patch: PatchBuilder, ids: frozenset[str] | None) -> dict[str, list[str]]:
                return _inject_again(request, policy, view, old, patch, ids=ids)

            skipped = opt_out.honoured(job, policy)
            restored = restore.restore(stored, builder, inject, skipped=skipped, manager=request.field_manager)
            decision.told, decision.news = restored.notes, restored.changed
            builder.only_below = _new_replicas(stored, builder.document)
            if builder.only_below:
                decision.told |= inject(builder, None)
                decision.news = list(dict.fromkeys(builder.authors))
        else:
            ids = [each.id for each, _ in policy.injections]
            decision.told = overlooked.cautions(job, ids) | _inject(job, policy, ctx, builder)
            decision.news = list(dict.fromkeys(builder.authors))
            _list_injections(job, [each for each in decision.news if not is_quiet(each)], builder)
    except (PatchConflict, ShapeError) as error:
        return Decision(skipped=f"schema: {error}"[:200], name=decision.name)
    if decision.skipped and not builder.operations:  # nothing was injected, so there is nothing to report
        decision.told = {}
        return decision
    decision.patch, decision.authors, decision.document = builder.operations, builder.authors, builder.document
    decision.skipped = ""
    return decision


def inject_unskippable(request: review.AdmissionRequest, *, policy: Policy, view: ClusterView) -> Decision:
    """The injections that no user can skip, for a new job for which `mutate` takes too long; no warnings on its fields.

    An update gets nothing: rules reject the removal of their values.
    """
    decision = Decision(name=request.name)
    if request.operation != "CREATE":
        return decision
    try:
        job, written = document.decode(document.without_status(request.object))
        decision.name = _name(request, job)
        reason = reason_to_inject_nothing(request, job, None, policy, view)
        if reason and not only_claims(request, reason, policy, view):
            return decision
        builder = PatchBuilder(written)
        ctx = _context(request, job, view, old=None, document=request.object, policy=policy)
        decision.told = _inject(job, _unskippable(policy), ctx, builder)
    except (PatchConflict, ShapeError, msgspec.DecodeError, UnicodeDecodeError) as error:
        decision.skipped = f"schema: {error}"[:200]
        return decision
    decision.news = list(dict.fromkeys(builder.authors))
    decision.patch, decision.authors, decision.document = builder.operations, builder.authors, builder.document
    return decision


def _unskippable(policy: Policy) -> Policy:
    return replace(policy, injections=tuple(each for each in policy.injections if each[0].unskippable))


def _list_injections(job: MPIJob, added: list[str], builder: PatchBuilder) -> None:
    """Write the ids of the injections to an annotation. It is for people only and decides nothing.

    The API server may call again after another webhook changed the job, so earlier ids stay.
    """
    earlier = [each for each in job.annotations.get(annotations.INJECTED, "").split(",") if each in injections.REGISTRY]
    ids = ",".join(sorted({*earlier, *added}))
    if added and builder.get(_LIST_OF_INJECTIONS) != ids:
        builder.write_own(_LIST_OF_INJECTIONS, ids)


def _new_replicas(stored: Any, new: Any) -> frozenset[Path]:
    """Where an update adds the launcher or the workers, whose template is injected as in a new job."""
    before, after = (at(document, "spec", "mpiReplicaSpecs") for document in (stored, new))
    return frozenset(("spec", "mpiReplicaSpecs", role) for role in after if before and role not in before)


def _inject_again(
    request: AdmissionRequest,
    policy: Policy,
    view: ClusterView,
    old: MPIJob | None,
    builder: PatchBuilder,
    *,
    ids: frozenset[str] | None,
) -> dict[str, list[str]]:
    """Run the injections of these `ids`, None for all, on the job in `builder` as at its creation; returns their
    notes.
    """
    written = msgspec.Raw(msgspec.json.encode(builder.document))
    job = mpijob.decode(written)
    ctx = _context(request, job, view, old, document=written, policy=policy)
    return _inject(job, policy, ctx, builder, ids)


def _inject(
    job: MPIJob, policy: Policy, ctx: Context, builder: PatchBuilder, ids: frozenset[str] | None = None
) -> dict[str, list[str]]:
    """Run the injections that the job does not skip; returns their notes."""
    notes_by_id: dict[str, list[str]] = {}
    notes: list[str] = [*opt_out.cautions(job, policy)]
    if notes:
        notes_by_id[annotations.SKIP] = notes
    skipped = opt_out.honoured(job, policy)
    ctx = excuse.for_injections(ctx, job, policy)
    for injection, settings in policy.injections:
        if injection.id not in skipped and (ids is None or injection.id in ids):
            builder.author = injection.id
            if notes := [*injection.inject(job, settings, ctx, builder)]:
                notes_by_id[injection.id] = notes
    return notes_by_id


def validate(
    request: review.AdmissionRequest,
    *,
    policy: Policy,
    view: ClusterView,
    today: date,
    granted: Mapping[str, bool] | None = None,
    time_left: Callable[[], float] = lambda: float("inf"),
) -> Decision:
    """Every violation in one decision; `time_left` gives the seconds until the API server stops waiting.

    On UPDATE only what is worse than in the old object counts (see `ratchet`). Exemptions expire by `today` (UTC).
    `granted` says whether the requester may exempt the job, by rule that the job requests to be exempt from. The
    decision names the rules that are missing there in `requested`; the caller looks them up and calls again.
    DeadlineExceeded when the time is up.
    """
    if reason := reason_to_check_nothing(request, policy, view):
        return Decision(name=request.name, skipped=reason)
    if large := too_large.finding(request.object):
        return _too_large(request, large, policy, view)
    try:
        job = decode_job(request.object)
    except ShapeError as error:
        review.confirm(request)
        return _wrong_shape(request.name, error, policy)
    job = mpijob.apply_operator_defaults(job)
    decision = Decision(name=_name(request, job))
    old = _old(request) if request.operation == "UPDATE" else None
    ctx = _context(request, job, view, old, document=request.object, policy=policy)
    ctx = excuse.without_excused_limits(ctx, job, policy, today, granted)
    ctx = own_rules.evaluated(request, job, ctx, policy)
    decision.rule_faults = own_rules.faults(ctx)
    before = None if old is None else own_rules.of_stored(ctx, request.old_object)
    found = messages.without_copies(list(_findings(policy.rules, job, ctx, time_left)), job)
    if found and old is not None and before is not None:
        before = ratchet.judging_stored(before, job, old)
        of_stored = (finding for finding, _ in _findings(policy.rules, old, before, time_left))
        found = ratchet.worse(found, job, of_stored, old)
    found += _missing(request, job, policy, ctx)
    for finding, action in found:
        leads_to = action.at_most(finding.violation.ceiling)
        outcome = excuse.excuse_for(finding, job=job, ctx=ctx, policy=policy.document, today=today, granted=granted)
        if outcome.reason:
            decision.exempted.append((finding, outcome.reason))
            continue
        if outcome.requested and leads_to is Action.DENY:
            decision.requested.append(finding.rule)
        decision.add(outcome.finding, leads_to)
    if vain := list(excuse.cautions(job, ctx)):
        decision.told[ASKED] = [*vain]
    decision.denied = messages.told_once(decision.denied)
    decision.put_worst_first()
    decision.refused_gpus = refused_gpus.of(decision, job, ctx)
    if policy.action(QUOTA_RULE) is Action.DENY:
        decision.reservation = reservation_of(job, ctx)
    return decision


def _too_large(request: review.AdmissionRequest, large: Finding, policy: Policy, view: ClusterView) -> Decision:
    """Reject an object that is not decoded, at any action and without exemption, unless it was stored as it is."""
    decision = Decision(name=request.name)
    if passes_unjudged(request, policy, view):
        decision.skipped = too_large.AS_STORED
    else:
        decision.add(large, policy.document.ceiling)
    return decision


def _findings(
    rules: Sequence[tuple[Rule, RuleSettings, Action]], job: MPIJob, ctx: Context, time_left: Callable[[], float]
) -> Iterator[tuple[Finding, Action]]:
    """The findings of each rule, with the action that the policy gives them."""
    for rule, settings, action in rules:
        if time_left() < RESERVE:
            raise DeadlineExceeded(rule.id)
        for violation in rule.check(job, settings, ctx):
            yield Finding(rule.id, violation), action


def _missing(
    request: review.AdmissionRequest, job: MPIJob, policy: Policy, ctx: Context
) -> list[tuple[Finding, Action]]:
    """Required injections that are missing. Any user may write what keeps a job without injections, so that excuses
    only controllers that the policy trusts.
    """
    if not policy.required:
        return []
    reason = reason_to_inject_nothing(request, job, ctx.old, policy, ctx.view)
    if reason == BY_CONTROLLER:
        reason = ""
    if reason and not only_claims(request, reason, policy, ctx.view):
        return []
    return list(required.missing(policy, ctx, claimed=reason, stored=request.old_object if ctx.old else None))


def _old(request: review.AdmissionRequest) -> MPIJob | None:
    """The stored object. If it cannot be read (None), every finding on the new one counts."""
    if too_large.finding(request.old_object):
        return None
    try:
        return mpijob.apply_operator_defaults(decode_job(request.old_object))
    except ShapeError:
        return None


def _context(
    request: review.AdmissionRequest,
    job: MPIJob,
    view: ClusterView,
    old: MPIJob | None,
    *,
    document: msgspec.Raw,
    policy: Policy,
) -> Context:
    return Context(
        operation="UPDATE" if request.operation == "UPDATE" else "CREATE",
        namespace=request.namespace or job.metadata.namespace,
        username=request.user_info.username,
        groups=tuple(request.user_info.groups or ()),
        by_controller=left_alone.is_by_controller(request, policy, view),
        old=old,
        document=document,
        old_document=request.old_object,
        view=view,
        admitted=policy.admitted,
    )


def _name(request: review.AdmissionRequest, job: MPIJob) -> str:
    return job.metadata.name or request.name or f"{job.metadata.generate_name}*"


def _wrong_shape(name: str, error: ShapeError, policy: Policy) -> Decision:
    violation = Violation(error.path, error.message, fix="Correct the value.", reason=CauseReason.INVALID)
    decision = Decision(name=name)
    decision.add(Finding(SCHEMA, violation), policy.document.ceiling)
    return decision


__all__ = ["DeadlineExceeded", "Decision", "Policy", "load_policy", "mutate", "policy_model", "validate"]
