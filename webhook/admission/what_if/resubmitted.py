"""The verdict on a stored job, as if its owner submitted it again now.

The job gets the injections of a new job. The view must be `WithoutJobs`, because the `used` amounts of quotas include
the job, and the job must not be rejected because of its own use. There is no user, so exemptions for users do not
apply. An exemption that the job requests applies, because the creator of the job had the right to it.
"""

from collections.abc import Mapping
from datetime import date

import msgspec

from webhook.admission import pipelines, too_expensive
from webhook.admission.decision import Decision
from webhook.api.review import AdmissionRequest
from webhook.cluster.resource import Metadata
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.without_jobs import WithoutJobs
from webhook.policy.in_force import Policy, PolicySet


class _Job(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)


def creation(data: bytes | msgspec.Raw) -> AdmissionRequest | None:
    """The review that would create the job; None if `data` is not a job."""
    try:
        meta = msgspec.json.decode(data, type=_Job).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return AdmissionRequest(
        uid="replay", operation="CREATE", name=meta.name, namespace=meta.namespace, object=msgspec.Raw(data)
    )


def inject(request: AdmissionRequest, policy: Policy, view: WithoutJobs) -> Decision:
    return pipelines.mutate(request, policy=policy, view=view)


def verdict(
    request: AdmissionRequest,
    injected: Decision,
    policy: Policy,
    *,
    view: WithoutJobs,
    today: date,
    granted: Mapping[str, bool] | None = None,
) -> Decision:
    if injected.document is not None:
        request = msgspec.structs.replace(request, object=msgspec.Raw(msgspec.json.encode(injected.document)))
    return pipelines.validate(request, policy=policy, view=view, today=today, granted=granted)


def judge(
    data: bytes | msgspec.Raw,
    *,
    policies: PolicySet,
    view: WithoutJobs,
    today: date,
) -> Decision | None:
    """The verdict on a stored job; None if `data` is not a job."""
    request = creation(data)
    if request is None:
        return None
    namespace = view.get(NAMESPACES, request.namespace)
    policy = policies.for_namespace(namespace)
    injected = inject(request, policy, view)
    decision = verdict(request, injected, policy, view=view, today=today)
    if decision.requested:
        granted = dict.fromkeys(decision.requested, True)
        decision = verdict(request, injected, policy, view=view, today=today, granted=granted)
    return decision


def too_expensive_to_judge(data: bytes | msgspec.Raw, *, policies: PolicySet, view: WithoutJobs) -> Decision | None:
    """The verdict on a stored job that is too expensive to judge; None if `data` is not a job."""
    request = creation(data)
    if request is None:
        return None
    namespace = view.get(NAMESPACES, request.namespace)
    return too_expensive.verdict(request, policies.for_namespace(namespace), view)
