"""Reasons to inject nothing into an object, or to admit it without a check."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from webhook.api import review, untyped
from webhook.api.kueue import FOREIGN, without_kueues
from webhook.api.mpijob import MPIJob
from webhook.api.untyped import at, mapping
from webhook.cluster.view import ClusterView
from webhook.policy.in_force import Policy
from webhook.predict.kueue.managed import is_there

NOT_OURS = "not a CREATE or UPDATE of a job"
BY_CONTROLLER = "an update by a controller"
OWNED = "owned by a controller"
COPY = "a copy made by Kueue"
# What a job says of itself.
CLAIMED = frozenset({OWNED, COPY})
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""What users write of the metadata, so custom rules may read it."""


def reason_to_inject_nothing(
    request: review.AdmissionRequest, job: MPIJob, old: MPIJob | None, policy: Policy, view: ClusterView
) -> str:
    """Why nothing may be injected into this object; empty if it may."""
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return NOT_OURS
    if request.operation == "UPDATE" and _is_by_controller(request, policy, view):
        return BY_CONTROLLER
    if is_being_deleted(old):
        return "being deleted"
    if job.owned:
        return OWNED
    if any(key in job.labels or key in job.annotations for key in FOREIGN):
        return COPY
    return ""


def is_being_deleted(old: MPIJob | None) -> bool:
    """Whether the stored job is being deleted.

    What a submitted object says of it means nothing: server-side apply keeps `deletionTimestamp` as the user wrote it.
    """
    return old is not None and old.metadata.deletion_timestamp is not None


def only_claims(request: review.AdmissionRequest, reason: str, policy: Policy, view: ClusterView) -> bool:
    """Whether the `reason` is only what the job says of itself. Any user may write that, so it is not believed."""
    return reason in CLAIMED and not _is_by_controller(request, policy, view)


def _is_by_controller(request: review.AdmissionRequest, policy: Policy, view: ClusterView) -> bool:
    """Whether the requester is one of the policy's controllers, in a cluster with Kueue.

    In other clusters a user who may create the namespace `kueue-system` can have Kueue's account.
    """
    return request.user_info.username in policy.document.controllers and is_there(view)


def reason_to_check_nothing(
    request: review.AdmissionRequest, job: MPIJob, old: MPIJob | None, policy: Policy, view: ClusterView
) -> str:
    """Why this object is admitted without a check; empty if it is checked.

    A controller's update passes only if it changes what such controllers change. Anything else is checked, since the
    account may be taken over.
    """
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return NOT_OURS
    if is_being_deleted(old) and _same_spec(request):
        return "being deleted"
    if request.operation == "UPDATE" and _is_by_controller(request, policy, view) and _is_a_controllers(request):
        return BY_CONTROLLER
    if old is not None and job.spec == old.spec and _same_metadata(job, old) and _same_spec(request, *_METADATA):
        return "nothing changed that is checked"
    return ""


def _same_metadata(job: MPIJob, old: MPIJob) -> bool:
    return job.labels == old.labels and job.annotations == old.annotations


def _same_spec(request: review.AdmissionRequest, *metadata: str) -> bool:
    """Whether the specs are equal, and these fields of the metadata, including fields that the wire types leave out."""
    new, old = (untyped.decode(raw) for raw in (request.object, request.old_object))
    if new.get("spec") != old.get("spec"):
        return False
    return all(at(new, "metadata").get(field) == at(old, "metadata").get(field) for field in metadata)


def _is_a_controllers(request: review.AdmissionRequest) -> bool:
    """Whether an update changes nothing but metadata, status, and what Kueue changes to start and stop a job."""
    new, old = (untyped.decode(raw).get("spec") for raw in (request.object, request.old_object))
    return _without_kueues(new) == _without_kueues(old)


def passes_unjudged(
    request: review.AdmissionRequest,
    policy: Policy,
    view: ClusterView,
    *,
    controllers_change: Callable[[review.AdmissionRequest], bool] | None = None,
) -> bool:
    """Whether an update of an object passes that cannot be judged.

    Anyone may leave labels, annotations and spec as they are. A controller may make the `controllers_change`, by
    default what Kueue changes in a spec. A user may not: rules read these fields.
    """
    if request.operation != "UPDATE":
        return False
    try:
        if all(new == old for new, old in _pairs(_whole, request)):
            return True
        return _is_by_controller(request, policy, view) and (controllers_change or only_kueues_change)(request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def only_kueues_change(request: review.AdmissionRequest) -> bool:
    """Whether an update leaves labels, annotations and spec as they are, except what Kueue changes in a spec.

    Compared byte by byte, since the API server writes both alike. So it takes a few milliseconds for any job.
    """
    return all(new == old for new, old in _pairs(_but_for_kueue, request))


def _pairs(
    parts: Callable[[msgspec.Raw], Iterator[object]], request: review.AdmissionRequest
) -> Iterator[tuple[object, object]]:
    return zip(parts(request.object), parts(request.old_object), strict=True)


_Raws = dict[str, msgspec.Raw]


class _Metadata(msgspec.Struct):
    labels: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    annotations: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _Job(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Raws = msgspec.field(default_factory=dict)


class _Parts(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


def _whole(document: msgspec.Raw) -> Iterator[object]:
    job = msgspec.json.decode(document, type=_Parts)
    yield bytes(job.metadata.labels), bytes(job.metadata.annotations), bytes(job.spec)


def _but_for_kueue(document: msgspec.Raw) -> Iterator[object]:
    """The parts of a job that Kueue does not change, those first that are read with the least work."""
    job = msgspec.json.decode(document, type=_Job)
    run_policy = job.spec.pop("runPolicy", msgspec.Raw(b"{}"))
    replicas = job.spec.pop("mpiReplicaSpecs", msgspec.Raw(b"{}"))
    yield bytes(job.metadata.labels), bytes(job.metadata.annotations), _bytes(job.spec)
    policy = msgspec.json.decode(run_policy, type=_Raws | None) or {}
    policy.pop("suspend", None)
    yield _bytes(policy)
    roles = msgspec.json.decode(replicas, type=dict[str, _Raws] | None) or {}
    templates = {
        role: without_kueues(msgspec.json.decode(replica.pop("template", b"{}"), type=dict[str, _Raws]))
        for role, replica in roles.items()
    }
    yield _bytes(roles), _bytes(templates)


def _bytes(value: Any) -> Any:
    """`value` with bytes in the place of Raw, which is never equal to another."""
    if isinstance(value, dict):
        return {key: _bytes(item) for key, item in value.items()}
    return bytes(value)


def _without_kueues(spec: Any) -> dict[str, Any]:
    """The spec without the fields that Kueue changes, and without parts that are then empty."""
    spec = mapping(spec)
    policy = {name: value for name, value in at(spec, "runPolicy").items() if name != "suspend"}
    replicas = {}
    for role, replica in at(spec, "mpiReplicaSpecs").items():
        replicas[role] = {**mapping(replica), "template": without_kueues(at(replica, "template"))}
    return {**spec, "runPolicy": policy, "mpiReplicaSpecs": replicas}
