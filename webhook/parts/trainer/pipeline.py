"""The verdict on a TrainJob or a runtime: that of the rules on the MPIJob with the same pods."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import structs

from webhook.admission import pipelines, too_large
from webhook.admission import too_expensive as expensive
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.admission.skipping import passes_unjudged
from webhook.api import mpijob, review, untyped
from webhook.api.review import AdmissionRequest, GroupVersionKind
from webhook.api.untyped import at, mapping
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import ClusterView
from webhook.kit.context import Context
from webhook.parts.trainer import kinds, unshaped
from webhook.parts.trainer.places import Places
from webhook.parts.trainer.replicated_jobs import FIX, TooLarge
from webhook.parts.trainer.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TrainingRuntime
from webhook.parts.trainer.selection import OF_TEMPLATES, selected
from webhook.parts.trainer.shape import Shape, of_runtime, of_train_job
from webhook.policy.in_force import Policy, PolicySet
from webhook.rules import CauseReason, Violation, job_size

NOT_OURS: Final = "neither a TrainJob nor a runtime"
NOT_OF_MPI: Final = "not of an MPI runtime"
RUNTIME_UNKNOWN: Final = "its runtime is not known"
UNREADABLE: Final = "not an object"
Read = Shape | Finding | str
"""An object's shape, or why it is too large, or why it is not judged."""
_KINDS: Final = (kinds.TRAIN_JOB, kinds.RUNTIME, kinds.CLUSTER_RUNTIME)


def decide(
    request: AdmissionRequest,
    *,
    policies: PolicySet,
    view: ClusterView,
    today: date,
    granted: Mapping[str, bool] | None = None,
    time_left: Callable[[], float] = lambda: float("inf"),
) -> Decision:
    """The decision for every review that a configuration could send; a job whose runtime is unknown is admitted."""
    namespace = view.get(NAMESPACES, request.namespace)
    policy = policies.for_namespace(namespace)
    return judge(request, policy=policy, view=view, today=today, granted=granted, time_left=time_left)


def too_expensive(request: AdmissionRequest, policy: Policy, view: ClusterView) -> Decision:
    """The decision on an object that takes too much processor time."""
    return expensive.verdict(request, policy, view, controllers_change=unshaped.same_pods)


def judge(
    request: AdmissionRequest,
    *,
    policy: Policy,
    view: ClusterView,
    today: date,
    granted: Mapping[str, bool] | None = None,
    time_left: Callable[[], float] = lambda: float("inf"),
) -> Decision:
    """The same by a policy."""
    kind = request.kind
    if (f"{kind.group}/{kind.version}", request.operation in {"CREATE", "UPDATE"}) != (kinds.API_VERSION, True):
        return Decision(skipped=NOT_OURS, name=request.name)
    if kind.kind not in _KINDS or request.sub_resource:
        return Decision(skipped=NOT_OURS, name=request.name)
    made = _shape(request, request.object, view)
    if isinstance(made, str):
        return Decision(skipped=made, name=request.name)
    if isinstance(made, Finding):
        return _too_large(request, made, policy, view)
    stored = _stored(request, made, view) if request.operation == "UPDATE" else ""
    shapes = {shape.document: shape for shape in (stored, made) if isinstance(shape, Shape)}
    decision = pipelines.validate(
        _as_mpi_job(request, made, stored),
        policy=selected(policy, partial(_shape_of, shapes), runtime=kind.kind != kinds.TRAIN_JOB),
        view=view,
        today=today,
        granted=granted,
        time_left=time_left,
    )
    if kind.kind != kinds.TRAIN_JOB:
        decision.reservation = None
    decision.group, decision.kind, decision.policy = kinds.GROUP, kind.kind, policy.identity
    return _placed(decision, made.places)


def _too_large(request: AdmissionRequest, large: Finding, policy: Policy, view: ClusterView) -> Decision:
    """Reject an object that is too large, regardless of the rule's action, unless it is stored unchanged."""
    decision = Decision(name=request.name)
    if passes_unjudged(request, policy, view, controllers_change=unshaped.same_pods):
        decision.skipped = too_large.AS_STORED
    else:
        decision.add(large, policy.document.ceiling)
    decision.group, decision.kind, decision.policy = kinds.GROUP, request.kind.kind, policy.identity
    return decision


def _stored(request: AdmissionRequest, made: Read, view: ClusterView) -> Read:
    """The same for the stored object; the new one's shape if it is unchanged."""
    return made if bytes(request.object) == bytes(request.old_object) else _shape(request, request.old_object, view)


def _shape(request: AdmissionRequest, written: msgspec.Raw, view: ClusterView) -> Read:
    """The shape of the object, or why there is none: a finding if it is too large to be merged."""
    if large := too_large.finding(written):
        return large if _is_of_mpi(request, written, view) else too_large.TOO_LARGE
    try:
        return _put_together(request, written, view)
    except TooLarge as error:
        violation = Violation(error.path, error.message, fix=FIX, reason=CauseReason.NOT_SUPPORTED)
        return Finding(job_size.RULE, violation)


def _is_of_mpi(request: AdmissionRequest, unread: msgspec.Raw, view: ClusterView) -> bool:
    """Whether an object that is not decoded belongs to an MPI runtime, as far as that is known."""
    head = unshaped.head(unread)
    if request.kind.kind != kinds.TRAIN_JOB:
        return head.has_mpi_policy
    runtime = _runtime(head.runtime, request.namespace, view)
    return runtime is not None and bool(runtime.spec)


def _put_together(request: AdmissionRequest, written: msgspec.Raw, view: ClusterView) -> Shape | str:
    try:
        document = untyped.decode(written)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        review.confirm(request)
        return UNREADABLE
    if request.kind.kind != kinds.TRAIN_JOB:
        return of_runtime(mapping(document)) or NOT_OF_MPI
    runtime = _runtime(at(document, "spec", "runtimeRef"), request.namespace, view)
    if runtime is None:
        return RUNTIME_UNKNOWN
    return of_train_job(mapping(document), runtime) or NOT_OF_MPI


def _runtime(reference: Mapping[str, Any], namespace: str, view: ClusterView) -> TrainingRuntime | None:
    name, kind = str(reference.get("name") or ""), reference.get("kind") or kinds.CLUSTER_RUNTIME
    if (reference.get("apiGroup") or kinds.GROUP) != kinds.GROUP:
        return None
    if kind == kinds.RUNTIME:
        found = view.get(TRAINING_RUNTIMES, (namespace, name))
    else:
        found = view.get(CLUSTER_TRAINING_RUNTIMES, name)
    return found if isinstance(found, TrainingRuntime) else None


def _shape_of(shapes: Mapping[bytes, Shape], ctx: Context) -> Shape:
    return shapes[bytes(ctx.document)]


def _as_mpi_job(request: AdmissionRequest, made: Shape, stored: Read) -> AdmissionRequest:
    group, _, version = mpijob.API_VERSION.partition("/")
    return structs.replace(
        request,
        kind=GroupVersionKind(group=group, version=version, kind="MPIJob"),
        object=msgspec.Raw(made.document),
        old_object=msgspec.Raw(stored.document if isinstance(stored, Shape) else b"null"),
    )


def _placed(decision: Decision, places: Places) -> Decision:
    """The decision with the words and paths of the object that was submitted."""
    for found in (decision.denied, decision.warned, decision.audited):
        found[:] = [_in_place(finding, places) for finding in found if not _told_before(finding, places)]
    decision.exempted = [(_in_place(finding, places), reason) for finding, reason in decision.exempted]
    return decision


def _told_before(finding: Finding, places: Places) -> bool:
    """Whether it is advice about the runtime only: its author has read it, and a TrainJob cannot follow it."""
    violation = finding.violation
    return violation.advisory and finding.rule in OF_TEMPLATES and places.of(violation.path).in_runtime


def _in_place(finding: Finding, places: Places) -> Finding:
    violation = finding.violation
    path, where = places.shown(violation.path)
    heading, end, lines = places.worded(violation.message).partition("\n")
    message, fix = f"{heading}{where}{end}{lines}", places.worded(violation.fix)
    return replace(finding, violation=replace(violation, path=path, message=message, fix=fix))
