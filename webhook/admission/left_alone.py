"""Why the pipelines leave an object alone: nothing is injected into it, or it is admitted without a check."""

import msgspec

from webhook.api import review
from webhook.api.kueue import FOREIGN
from webhook.api.mpijob import MPIJob
from webhook.policy.in_force import Policy

NOT_OURS = "not a CREATE or UPDATE of a job"
BY_CONTROLLER = "an update by a controller"
OWNED = "owned by a controller"
COPY = "a copy made by Kueue"
# What a job says of itself.
CLAIMED = frozenset({OWNED, COPY})


def reason_to_inject_nothing(request: review.AdmissionRequest, job: MPIJob, policy: Policy) -> str:
    """Why nothing may be injected into this object, empty when it may."""
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return NOT_OURS
    if request.operation == "UPDATE" and request.user_info.username in policy.document.controllers:
        return BY_CONTROLLER
    if job.metadata.deletion_timestamp:
        return "being deleted"
    if any(owner.controller for owner in job.metadata.owner_references or ()):
        return OWNED
    if any(key in job.labels or key in job.annotations for key in FOREIGN):
        return COPY
    return ""


def reason_to_check_nothing(request: review.AdmissionRequest, job: MPIJob, old: MPIJob | None, policy: Policy) -> str:
    """Why this object is admitted without a check, empty when it is not."""
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return NOT_OURS
    if job.metadata.deletion_timestamp:
        return "being deleted"
    if request.operation == "UPDATE" and request.user_info.username in policy.document.controllers:
        return BY_CONTROLLER
    if old is not None and job.spec == old.spec and _same_metadata(job, old) and _same_spec(request):
        return "nothing changed that is checked"
    return ""


def _same_metadata(job: MPIJob, old: MPIJob) -> bool:
    return job.labels == old.labels and job.annotations == old.annotations


def _same_spec(request: review.AdmissionRequest) -> bool:
    """Whether the specs are the same, including fields that the wire types leave out and some rule may read."""
    new, old = (msgspec.json.decode(raw) for raw in (request.object, request.old_object))
    return bool(new.get("spec") == old.get("spec"))
