"""The decision on an object that took more processor time than one decision may take."""

from collections.abc import Callable

import msgspec

from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.admission.mutate.pipeline import inject_unskippable
from webhook.admission.skipping import passes_unjudged
from webhook.api.review import AdmissionRequest
from webhook.cluster.view import ClusterView
from webhook.injections import Caution
from webhook.policy.in_force import Policy
from webhook.rules import CauseReason, Violation
from webhook.rules.job_size import RULE

TOO_EXPENSIVE = "too expensive to judge"
AS_STORED = f"{TOO_EXPENSIVE}, and unchanged since it was stored"
NOTHING_INJECTED = f"{TOO_EXPENSIVE}, so nothing was injected"
_FIX = "Make it smaller: fewer containers, variables, volumes or words of a command."


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    generate_name: str = ""


class _Named(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


def injection(request: AdmissionRequest, policy: Policy, view: ClusterView) -> Decision:
    decision = inject_unskippable(request, policy=policy, view=view)
    if decision.patch:
        caution = f"{TOO_EXPENSIVE}, so nothing was injected but {', '.join(dict.fromkeys(decision.authors))}"
    else:
        caution, decision.skipped = NOTHING_INJECTED, decision.skipped or TOO_EXPENSIVE
    decision.told[RULE], decision.policy = [Caution(caution)], policy.identity
    return decision


def no_injection(request: AdmissionRequest, policy: Policy) -> Decision:
    """The decision if even the injections that users cannot skip took too long."""
    decision = _decision(request, policy, skipped=TOO_EXPENSIVE)
    decision.told[RULE] = [Caution(NOTHING_INJECTED)]
    return decision


def verdict(
    request: AdmissionRequest,
    policy: Policy,
    view: ClusterView,
    *,
    controllers_change: Callable[[AdmissionRequest], bool] | None = None,
) -> Decision:
    """If the object may not pass unjudged, the finding has the strongest action that the policy's mode allows."""
    if passes_unjudged(request, policy, view, controllers_change=controllers_change):
        return _decision(request, policy, skipped=AS_STORED)
    decision = _decision(request, policy)
    message = f"{TOO_EXPENSIVE}: its checks take more processor time than one job may have"
    violation = Violation("spec", message, fix=_FIX, reason=CauseReason.NOT_SUPPORTED)
    decision.add(Finding(RULE, violation), policy.document.ceiling)
    return decision


def _decision(request: AdmissionRequest, policy: Policy, *, skipped: str = "") -> Decision:
    kind = request.kind
    return Decision(name=_name(request), group=kind.group, kind=kind.kind, skipped=skipped, policy=policy.identity)


def _name(request: AdmissionRequest) -> str:
    try:
        metadata = msgspec.json.decode(request.object, type=_Named).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return request.name
    return metadata.name or request.name or f"{metadata.generate_name}*"
