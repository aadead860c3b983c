"""The parts of a request that both pipelines use."""

import msgspec

from webhook.admission import skipping, too_large
from webhook.api import mpijob, review
from webhook.api.mpijob import MPIJob
from webhook.api.shape import ShapeError
from webhook.cluster.view import ClusterView
from webhook.kit.context import Context
from webhook.policy.in_force import Policy
from webhook.predict.pod_template import decode_job


def old_job(request: review.AdmissionRequest) -> MPIJob | None:
    """The stored job; None if it cannot be read. Without a stored job, all findings about the new job apply."""
    if too_large.finding(request.old_object):
        return None
    try:
        return mpijob.apply_operator_defaults(decode_job(request.old_object))
    except ShapeError:
        return None


def context_of(
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
        by_controller=skipping.is_by_controller(request, policy, view),
        old=old,
        document=document,
        old_document=request.old_object,
        view=view,
        admitted=policy.admitted,
    )


def name_of(request: review.AdmissionRequest, job: MPIJob) -> str:
    return job.metadata.name or request.name or f"{job.metadata.generate_name}*"
