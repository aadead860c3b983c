"""The verdict on a TrainJob or a runtime, by the rules for an MPIJob with the same pods."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any, Final

import msgspec
from msgspec import structs

from webhook.admission import pipelines, too_large
from webhook.admission import too_expensive as expensive
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.admission.skipping import passes_unjudged
from webhook.api import mpijob, untyped
from webhook.api.review import AdmissionRequest, GroupVersionKind
from webhook.api.untyped import at, mapping
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import ClusterView
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
RUNTIME_UNKNOWN: Final = "its runtime is unknown"
UNREADABLE: Final = "not an object"
Read = Shape | Finding | str
"""An object's shape, the finding that the object is too large, or the reason why it is not judged."""
_KINDS: Final = (kinds.TRAIN_JOB, kinds.RUNTIME, kinds.CLUSTER_RUNTIME)


def decide(
    request: AdmissionRequest,
    *,
    policies: PolicySet,
    view: ClusterView,
    today: date,
    granted: Mapping[str, bool] | None = None,
) -> Decision:
    """The verdict under the policy of the object's namespace. A TrainJob whose runtime is unknown is admitted."""
    namespace = view.get(NAMESPACES, request.namespace)
    policy = policies.for_namespace(namespace)
    return judge(request, policy=policy, view=view, today=today, granted=granted)


def too_expensive(request: AdmissionRequest, policy: Policy, view: ClusterView) -> Decision:
    return expensive.verdict(request, policy, view, controllers_change=unshaped.same_pods)


def judge(
    request: AdmissionRequest,
    *,
    policy: Policy,
    view: ClusterView,
    today: date,
    granted: Mapping[str, bool] | None = None,
) -> Decision:
    kind = request.kind
    is_ours = f"{kind.group}/{kind.version}" == kinds.API_VERSION and kind.kind in _KINDS and not request.sub_resource
    if not is_ours or request.operation not in {"CREATE", "UPDATE"}:
        return Decision(skipped=NOT_OURS, name=request.name)
    new = _shape(request, request.object, view)
    if isinstance(new, str):
        return Decision(skipped=new, name=request.name)
    if isinstance(new, Finding):
        return _too_large(request, new, policy, view)
    stored: Read = ""
    if request.operation == "UPDATE":
        unchanged = bytes(request.object) == bytes(request.old_object)
        stored = new if unchanged else _shape(request, request.old_object, view)
    shapes = {shape.document: shape for shape in (stored, new) if isinstance(shape, Shape)}
    decision = pipelines.validate(
        _as_mpi_job(request, new, stored),
        policy=selected(policy, lambda ctx: shapes[bytes(ctx.document)], runtime=kind.kind != kinds.TRAIN_JOB),
        view=view,
        today=today,
        granted=granted,
    )
    if kind.kind != kinds.TRAIN_JOB:
        decision.reservation = None
    decision.group, decision.kind, decision.policy = kinds.GROUP, kind.kind, policy.identity
    return _translated(decision, new.places)


def _too_large(request: AdmissionRequest, large: Finding, policy: Policy, view: ClusterView) -> Decision:
    """Rejects the object regardless of the rule's action. An update that leaves the pods unchanged is admitted."""
    decision = Decision(name=request.name)
    if passes_unjudged(request, policy, view, controllers_change=unshaped.same_pods):
        decision.skipped = too_large.AS_STORED
    else:
        decision.add(large, policy.document.ceiling)
    decision.group, decision.kind, decision.policy = kinds.GROUP, request.kind.kind, policy.identity
    return decision


def _shape(request: AdmissionRequest, encoded: msgspec.Raw, view: ClusterView) -> Read:
    if large := too_large.finding(encoded):
        return large if _is_of_mpi(request, encoded, view) else too_large.TOO_LARGE
    try:
        return _decoded_shape(request, encoded, view)
    except TooLarge as error:
        violation = Violation(error.path, error.message, fix=FIX, reason=CauseReason.NOT_SUPPORTED)
        return Finding(job_size.RULE, violation)


def _is_of_mpi(request: AdmissionRequest, encoded: msgspec.Raw, view: ClusterView) -> bool:
    head = unshaped.head(encoded)
    if request.kind.kind != kinds.TRAIN_JOB:
        return head.has_mpi_policy
    runtime = _runtime(head.runtime, request.namespace, view)
    return runtime is not None and bool(runtime.spec)


def _decoded_shape(request: AdmissionRequest, encoded: msgspec.Raw, view: ClusterView) -> Shape | str:
    try:
        document = untyped.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
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
        runtime = view.get(TRAINING_RUNTIMES, (namespace, name))
    else:
        runtime = view.get(CLUSTER_TRAINING_RUNTIMES, name)
    return runtime if isinstance(runtime, TrainingRuntime) else None


def _as_mpi_job(request: AdmissionRequest, new: Shape, stored: Read) -> AdmissionRequest:
    group, _, version = mpijob.API_VERSION.partition("/")
    return structs.replace(
        request,
        kind=GroupVersionKind(group=group, version=version, kind="MPIJob"),
        object=msgspec.Raw(new.document),
        old_object=msgspec.Raw(stored.document if isinstance(stored, Shape) else b"null"),
    )


def _translated(decision: Decision, places: Places) -> Decision:
    for findings in (decision.denied, decision.warned, decision.audited):
        findings[:] = [_in_place(finding, places) for finding in findings if not _is_for_runtime(finding, places)]
    decision.exempted = [(_in_place(finding, places), reason) for finding, reason in decision.exempted]
    return decision


def _is_for_runtime(finding: Finding, places: Places) -> bool:
    """Whether the finding is advice that the runtime's author got in the review of the runtime."""
    violation = finding.violation
    return violation.advisory and finding.rule in OF_TEMPLATES and places.of(violation.path).in_runtime


def _in_place(finding: Finding, places: Places) -> Finding:
    violation = finding.violation
    path, where = places.shown(violation.path)
    heading, end, lines = places.worded(violation.message).partition("\n")
    message, fix = f"{heading}{where}{end}{lines}", places.worded(violation.fix)
    return replace(finding, violation=replace(violation, path=path, message=message, fix=fix))
