"""`decide` chooses the pipeline for a review. It raises ReviewError if the object is not JSON."""

from collections.abc import Mapping
from datetime import date
from typing import Literal

from webhook.admission import skipping
from webhook.admission.decision import Decision
from webhook.admission.mutate.pipeline import mutate
from webhook.admission.validate.pipeline import validate
from webhook.api import mpijob
from webhook.api.review import AdmissionRequest
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import ClusterView
from webhook.policy.in_force import Policy, PolicySet, load_policy, policy_model

Hook = Literal["mutate", "validate"]


class DeadlineExceeded(Exception):
    """The API server no longer waits for the verdict."""


def decide(
    hook: Hook,
    request: AdmissionRequest,
    *,
    policies: PolicySet,
    view: ClusterView,
    today: date,
    granted: Mapping[str, bool] | None = None,
) -> Decision:
    """The decision for any review that a webhook configuration may send to `hook`."""
    kind = request.kind
    if request.operation not in {"CREATE", "UPDATE"}:
        return Decision(skipped="not a CREATE or UPDATE", name=request.name)
    if (kind.group, kind.kind) != (mpijob.GROUP, "MPIJob"):
        return Decision(skipped="not an MPIJob", name=request.name)
    if f"{kind.group}/{kind.version}" != mpijob.API_VERSION:
        if hook == "mutate":
            return Decision(skipped="another API version", name=request.name)
        return Decision(denied=[skipping.finding(f"{kind.group}/{kind.version}")], name=request.name)
    namespace = view.get(NAMESPACES, request.namespace)
    policy = policies.for_namespace(namespace)
    if hook == "mutate":
        decision = mutate(request, policy=policy, view=view)
    else:
        decision = validate(request, policy=policy, view=view, today=today, granted=granted)
    decision.policy = policy.identity
    return decision


__all__ = ["DeadlineExceeded", "Decision", "Policy", "load_policy", "mutate", "policy_model", "validate"]
