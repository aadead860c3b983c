"""Reasons to inject nothing into an object or to admit it without a check."""

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import msgspec

from webhook import PROGRAM
from webhook.admission.messages import SCHEMA, Finding
from webhook.api import mpijob, review
from webhook.api.kueue import FOREIGN, without_kueues
from webhook.api.mpijob import MPIJob
from webhook.cluster.view import ClusterView
from webhook.policy.in_force import Policy
from webhook.predict.kueue.managed import is_there
from webhook.rules import CauseReason, Violation, shortened

NOT_OURS = "not a CREATE or UPDATE of a job"
BY_CONTROLLER = "an update by a controller"
BEING_DELETED = "being deleted"
OWNED = "owned by a controller"
COPY = "a copy made by Kueue"
# A job has these reasons if it has certain metadata, which any user can write.
CLAIMED = frozenset({OWNED, COPY})
UNCHANGED = "no checked field changed"
_RULES_READ: Final = frozenset(("labels", "annotations"))
_METADATA: Final = _RULES_READ | {"finalizers", "ownerReferences"}
"""Metadata that users write and that custom rules may read."""


def reason_to_inject_nothing(
    request: review.AdmissionRequest, job: MPIJob, old: MPIJob | None, policy: Policy, view: ClusterView
) -> str:
    """The reason; empty if the object gets injections."""
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return NOT_OURS
    if request.operation == "UPDATE" and is_by_controller(request, policy, view):
        return BY_CONTROLLER
    if is_being_deleted(old):
        return BEING_DELETED
    if job.owned:
        return OWNED
    if any(key in job.labels or key in job.annotations for key in FOREIGN):
        return COPY
    return ""


def is_being_deleted(old: MPIJob | None) -> bool:
    """Whether the stored job is being deleted.

    The submitted object does not show this: with server-side apply, the user can write `deletionTimestamp`.
    """
    return old is not None and old.metadata.deletion_timestamp is not None


def only_claims(request: review.AdmissionRequest, reason: str, policy: Policy, view: ClusterView) -> bool:
    """Whether the `reason` follows only from metadata that any user can write. Such a reason is not trusted."""
    return reason in CLAIMED and not is_by_controller(request, policy, view)


def is_by_controller(request: review.AdmissionRequest, policy: Policy, view: ClusterView) -> bool:
    """Whether the requester is one of the policy's controllers, in a cluster with Kueue.

    In a cluster without Kueue, a user who may create the namespace `kueue-system` can create Kueue's account.
    """
    return request.user_info.username in policy.document.controllers and is_there(view)


def reason_to_check_nothing(request: review.AdmissionRequest, policy: Policy, view: ClusterView) -> str:
    """The reason; empty if the object is checked.

    A controller's update passes if it changes only fields that Kueue changes. Other updates by a controller are
    checked, because its account may be stolen. Values are compared byte by byte, because the API server encodes both
    objects in the same way.
    """
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return NOT_OURS
    pair = _pair(request)
    if pair is None:
        return ""
    new, old = pair
    if old.metadata.get("deletionTimestamp", _NULL) != _NULL and new.spec == old.spec:
        return BEING_DELETED
    if is_by_controller(request, policy, view) and only_kueues_change(request):
        return BY_CONTROLLER
    return UNCHANGED if new.spec == old.spec and _is_same(new, old, _METADATA) else ""


def passes_unjudged(
    request: review.AdmissionRequest,
    policy: Policy,
    view: ClusterView,
    *,
    controllers_change: Callable[[review.AdmissionRequest], bool] | None = None,
) -> bool:
    """Whether an update passes although its object cannot be judged.

    It passes if labels, annotations and spec are unchanged. A controller may also make the changes that
    `controllers_change` accepts, by default Kueue's changes of a spec. Other users may not make these changes, because
    rules read the changed fields.
    """
    pair = _pair(request)
    if pair is None:
        return False
    new, old = pair
    if new.spec == old.spec and _is_same(new, old, _RULES_READ):
        return True
    return is_by_controller(request, policy, view) and (controllers_change or only_kueues_change)(request)


_Raws = dict[str, msgspec.Raw]
_NULL: Final = b"null"
_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Written(msgspec.Struct):
    metadata: _Raws = msgspec.field(default_factory=dict)
    spec: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _Spec(msgspec.Struct):
    spec: _Raws = msgspec.field(default_factory=dict)


class _Parts(msgspec.Struct):
    metadata: dict[str, bytes]
    spec: bytes


def _pair(request: review.AdmissionRequest) -> tuple[_Parts, _Parts] | None:
    """The new and the stored object of an update; None if one cannot be read."""
    if request.operation != "UPDATE":
        return None
    try:
        return _parts(request.object), _parts(request.old_object)
    except _FAULTS:
        return None


def _parts(document: msgspec.Raw) -> _Parts:
    written = msgspec.json.decode(document, type=_Written)
    return _Parts({name: bytes(value) for name, value in written.metadata.items()}, bytes(written.spec))


def _is_same(new: _Parts, old: _Parts, fields: Collection[str]) -> bool:
    return all(new.metadata.get(field) == old.metadata.get(field) for field in fields)


def only_kueues_change(request: review.AdmissionRequest) -> bool:
    """Whether an update changes only the fields that Kueue changes to start and stop a job."""
    try:
        return all(
            new == old
            for new, old in zip(_but_for_kueue(request.object), _but_for_kueue(request.old_object), strict=True)
        )
    except _FAULTS:
        return False


def _but_for_kueue(document: msgspec.Raw) -> Iterator[object]:
    """The parts of a spec that Kueue does not change, the cheapest first."""
    spec = msgspec.json.decode(document, type=_Spec).spec
    run_policy = spec.pop("runPolicy", msgspec.Raw(b"{}"))
    replicas = spec.pop("mpiReplicaSpecs", msgspec.Raw(b"{}"))
    yield _bytes(spec)
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
    """`value` with bytes in place of Raw, because two Raws are never equal."""
    if isinstance(value, dict):
        return {key: _bytes(item) for key, item in value.items()}
    return bytes(value)


def finding(api_version: str) -> Finding:
    """The finding for an API version that is not served. The fix for an older version is a conversion."""
    fix = f"Write {mpijob.API_VERSION}."
    if api_version in mpijob.OLDER_VERSIONS:
        converts = f"un `{PROGRAM} convert FILE`, which also says what the image needs."
        fix = f"R{converts}" if api_version == mpijob.OLDER_VERSIONS[-1] else f"{fix[:-1]}, or r{converts}"
    message = f'"{shortened(api_version)}" is not served, the MPI operator knows only {mpijob.API_VERSION}'
    message = message if api_version else "is missing"
    return Finding(SCHEMA, Violation("apiVersion", message, fix=fix, reason=CauseReason.NOT_SUPPORTED))
