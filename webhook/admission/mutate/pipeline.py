"""`mutate` computes the injections into a job."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import structs

from webhook import injections
from webhook.admission import too_large
from webhook.admission.decision import Decision
from webhook.admission.mutate import api_server_checks, misspelled_annotations, opt_out, updates
from webhook.admission.request_context import context_of, name_of, old_job
from webhook.admission.skipping import only_claims, reason_to_inject_nothing
from webhook.admission.validate import exemptions
from webhook.api import annotations, document, mpijob, review, untyped
from webhook.api.mpijob import MPIJob
from webhook.api.review import AdmissionRequest
from webhook.api.shape import ShapeError
from webhook.api.untyped import at
from webhook.cluster.view import ClusterView
from webhook.kit.context import Context
from webhook.kit.patch import PatchBuilder, PatchConflict, Path
from webhook.policy.in_force import Policy

_LIST_OF_INJECTIONS: Final[Path] = ("metadata", "annotations", annotations.INJECTED)


def mutate(request: review.AdmissionRequest, *, policy: Policy, view: ClusterView) -> Decision:
    """The decision never denies, because the API server's schema rejects an object of the wrong shape.

    If an UPDATE drops injected values, they are restored (see `updates`). A Launcher or Worker that the update adds
    gets all injections.
    """
    request = structs.replace(request, object=document.as_submitted(request.object))
    if too_large.finding(request.object) or (request.operation == "UPDATE" and too_large.finding(request.old_object)):
        return Decision(name=request.name, skipped=too_large.TOO_LARGE)
    stored = None
    try:
        job, content = document.decode(request.object)
        ctx = context_of(request, job, view, old=None, document=request.object, policy=policy)
        builder = PatchBuilder(content)
        if request.operation == "UPDATE":
            stored = untyped.decode(request.old_object)
    except (ShapeError, msgspec.DecodeError, UnicodeDecodeError) as error:
        return Decision(skipped=f"schema: {error}"[:200], name=request.name)
    old = old_job(request) if request.operation == "UPDATE" else None
    decision = Decision(name=name_of(request, job), skipped=reason_to_inject_nothing(request, job, old, policy, view))
    decision.warned = api_server_checks.findings(job)
    decision.injection_warnings = policy.document.injection_warnings
    if decision.skipped and not only_claims(request, decision.skipped, policy, view):
        return decision
    if decision.skipped and old is None:  # a new job; an update gets no new injections
        policy = _unskippable(policy)
    try:
        if request.operation == "UPDATE":

            def inject(patch: PatchBuilder, ids: frozenset[str] | None) -> dict[str, list[str]]:
                return _inject_again(request, policy, view, old, patch, ids=ids)

            skipped = opt_out.honoured(job, policy)
            restored = updates.restore(stored, builder, inject, skipped=skipped, manager=request.field_manager)
            decision.told, news = restored.notes, restored.changed
            builder.only_below = _new_replicas(stored, builder.document)
            if builder.only_below:
                decision.told |= inject(builder, None)
                news = builder.authors
        else:
            decision.told = misspelled_annotations.cautions(job, policy) | _inject(job, policy, ctx, builder)
            news = builder.authors
            _list_injections(job, set(news) - policy.quiet, builder)
    except (PatchConflict, ShapeError) as error:
        return Decision(skipped=f"schema: {error}"[:200], name=decision.name)
    if decision.skipped and not builder.operations:  # nothing to report
        decision.told = {}
        return decision
    _add_patch(decision, builder, news, policy)
    decision.skipped = ""
    return decision


def _add_patch(decision: Decision, builder: PatchBuilder, news: Sequence[str], policy: Policy) -> None:
    decision.news = [author for author in dict.fromkeys(news) if author not in policy.quiet]
    decision.patch, decision.authors, decision.document = builder.operations, builder.authors, builder.document


def inject_unskippable(request: review.AdmissionRequest, *, policy: Policy, view: ClusterView) -> Decision:
    """Inject into a new job only what users cannot skip. The service uses this if `mutate` takes too long for a job.

    An update gets no injections, because rules reject an update that removes these values.
    """
    decision = Decision(name=request.name)
    if request.operation != "CREATE":
        return decision
    try:
        job, content = document.decode(document.as_submitted(request.object))
        decision.name = name_of(request, job)
        reason = reason_to_inject_nothing(request, job, None, policy, view)
        if reason and not only_claims(request, reason, policy, view):
            return decision
        builder = PatchBuilder(content)
        ctx = context_of(request, job, view, old=None, document=request.object, policy=policy)
        decision.told = _inject(job, _unskippable(policy), ctx, builder)
    except (PatchConflict, ShapeError, msgspec.DecodeError, UnicodeDecodeError) as error:
        decision.skipped = f"schema: {error}"[:200]
        return decision
    _add_patch(decision, builder, builder.authors, policy)
    return decision


def _unskippable(policy: Policy) -> Policy:
    return replace(policy, injections=tuple(entry for entry in policy.injections if entry[0].unskippable))


def _list_injections(job: MPIJob, added: set[str], builder: PatchBuilder) -> None:
    """Write the annotation that shows users the ids of the injections. No program reads the annotation.

    Earlier ids stay, because the API server may call the webhook again after another webhook changed the job.
    """
    earlier = job.annotations.get(annotations.INJECTED, "")
    ids = ",".join(sorted(added.union(injections.REGISTRY.keys() & earlier.split(",")) if earlier else added))
    if added and ids != earlier:
        builder.write_own(_LIST_OF_INJECTIONS, ids)


def _new_replicas(stored: Any, new: Any) -> frozenset[Path]:
    """The launcher or workers that an update adds. They get the injections of a new job."""
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
    """Run the injections with these `ids` on the job in `builder` as for a new job. None stands for all injections."""
    content = msgspec.Raw(msgspec.json.encode(builder.document))
    job = mpijob.decode(content)
    ctx = context_of(request, job, view, old, document=content, policy=policy)
    return _inject(job, policy, ctx, builder, ids)


def _inject(
    job: MPIJob, policy: Policy, ctx: Context, builder: PatchBuilder, ids: frozenset[str] | None = None
) -> dict[str, list[str]]:
    """Run the injections that the job does not skip. Returns their notes by injection."""
    notes: list[str] = [*opt_out.cautions(job, policy)]
    notes_by_source = {annotations.SKIP: notes} if notes else {}
    skipped = opt_out.honoured(job, policy)
    ctx = exemptions.for_injections(ctx, job, policy)
    for injection, settings in policy.injections:
        builder.author = author = injection.id
        if author in skipped or (ids is not None and author not in ids):
            continue
        if notes := [*injection.inject(job, settings, ctx, builder)]:
            notes_by_source[author] = notes
    return notes_by_source
