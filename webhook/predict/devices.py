"""The accelerators that a pod gets, by extended resources and by claims (dynamic resource allocation).

A device class has two names as an extended resource: its field `extendedResourceName`, and
`deviceclass.resource.kubernetes.io/` with the name of the class. A claim for the class matches a pattern of
accelerators if either name matches.
https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/#extended-resource

A pod's number of accelerators is unknown if the ResourceClaimTemplate or the class cannot be read. It is also unknown
if pods share a ResourceClaim.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from webhook.api import accelerators
from webhook.api.mpijob import ReplicaSpec
from webhook.api.pod import PodResourceClaim, PodTemplate
from webhook.api.quota_charges import ONE, Charge
from webhook.api.quota_scopes import ObjectTraits
from webhook.cluster.resources.device_classes import DEVICE_CLASSES, DeviceClass
from webhook.cluster.resources.resource_claim_templates import (
    RESOURCE_CLAIM_TEMPLATES,
    DeviceChoice,
    ResourceClaimTemplate,
)
from webhook.cluster.view import ABSENT, UNKNOWN, Answer, ClusterView
from webhook.kit.context import Context

_CLAIM_COUNT: Final = "count/resourceclaims.resource.k8s.io"
# The number that a quota counts for a claim of all devices of a node (`AllocationResultsMaxSize`).
_MOST_DEVICES: Final = 32
_SPECIAL: Final = re.compile(r"([*?\[])")


class Devices(msgspec.Struct, frozen=True, gc=False):
    """The minimum and maximum number of accelerators. `most` is None if unknown."""

    least: int = 0
    most: int | None = 0
    requested: int = 0
    """The number to compare with limits: the maximum, or the minimum if the maximum is unknown."""
    by_claim: bool = False
    """True if claims request some of the accelerators."""

    @property
    def exact(self) -> int:
        """The number of accelerators; 0 if it is uncertain."""
        return self.least if self.least == self.most else 0


class Reason(msgspec.Struct, frozen=True):
    """Why the number of a claim's accelerators is unknown."""

    why: str
    fix: str
    certain: bool = True
    """False if the cluster's objects could not be read. The rule then only warns."""


def names(patterns: tuple[str, ...], ctx: Context) -> tuple[str, ...]:
    """The patterns, and the extended resources of the device classes that match a pattern."""
    return ctx.once(_names, patterns)


def _names(patterns: tuple[str, ...], ctx: Context) -> tuple[str, ...]:
    classes = ctx.view.all(DEVICE_CLASSES)
    if classes is UNKNOWN:
        return patterns
    return patterns + tuple(
        _SPECIAL.sub(r"[\1]", device_class.extended_resource)
        for device_class in classes.values()
        if device_class.extended_resource
        and accelerators.is_accelerator(accelerators.DEVICE_CLASS + device_class.name, patterns)
    )


def backed(name: str, ctx: Context) -> bool:
    """True if the extended resource belongs to a device class. Nodes do not list these resources."""
    return name.startswith(accelerators.DEVICE_CLASS) or name in ctx.once(_extended_resources, ctx.view)


def _extended_resources(view: ClusterView, _: Context) -> frozenset[str]:
    classes = view.all(DEVICE_CLASSES)
    return frozenset(
        () if classes is UNKNOWN else (device_class.extended_resource for device_class in classes.values())
    )


def of_pod(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> Devices:
    """The accelerators of a pod. `patterns` are the resources of accelerators."""
    cached = ctx.once(_by_patterns, template)
    if (result := cached.get(patterns)) is None:
        result = cached[patterns] = _of_pod(template, patterns, ctx)
    return result


def _by_patterns(_: PodTemplate, __: Context) -> dict[tuple[str, ...], Devices]:
    return {}


def _of_pod(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> Devices:
    containers, claims = template.with_devices, _claims(template)
    extended = accelerators.pod_total(containers, names(patterns, ctx)) if containers else 0
    if not claims:
        return Devices(extended, extended, extended)
    claimed = list(_claimed(template, patterns, ctx))
    most = [request.most for request in claimed]
    return Devices(
        least=extended + sum(request.least for request in claimed),
        most=None if None in most else extended + sum(number or 0 for number in most),
        requested=extended + sum(request.requested for request in claimed),
        by_claim=any(request.least != 0 or request.most != 0 for request in claimed),
    )


def claimed_resource(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> str:
    """The quota resource for all accelerators of a pod; empty unless one request of one claim has all of them."""
    if accelerators.pod_total(template.with_devices, names(patterns, ctx)):
        return ""
    matching = []
    for claim in _claims(template):
        requests = _requests((claim and claim.resource_claim_template_name) or "", ctx.namespace, ctx.view)
        if requests is None:
            return ""
        matching += [
            choices for choices in requests if any(_bounds(choice, patterns, ctx) != (0, 0) for choice in choices)
        ]
    choices = matching[0] if len(matching) == 1 else ()
    certain = len(choices) == 1 and _bounds(choices[0], patterns, ctx)[1] is not None
    return f"{choices[0].device_class}{accelerators.DEVICES_OF_CLASS}" if certain else ""


def of_each(replica: ReplicaSpec | None, patterns: tuple[str, ...], ctx: Context) -> int:
    """`Devices.requested` of a pod of this role."""
    return 0 if replica is None else of_pod(replica.template, patterns, ctx).requested


def charges(claim_templates: Iterable[str], ctx: Context) -> tuple[Charge, ...]:
    """The quota use of a pod's claims, without the devices of unknown templates.

    https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/quota/v1/evaluator/core/resource_claims.go
    """
    return tuple(
        Charge(ObjectTraits(), _claim_usage(_requests(name, ctx.namespace, ctx.view) or ())) for name in claim_templates
    )


def by_claims(templates: Iterable[str], namespace: str, view: ClusterView) -> Iterator[tuple[str, int]]:
    """(name in metrics, number) of a pod's claimed accelerators; uncertain numbers are left out.

    If a request has several choices, the scheduler prefers the first.
    """
    for name in templates:
        for first, *_ in _requests(name, namespace, view) or ():
            metric = accelerators.name_in_metrics(accelerators.DEVICE_CLASS + first.device_class)
            if metric and first.count and not first.admin:
                yield metric, first.count


def _claim_usage(requests: Iterable[tuple[DeviceChoice, ...]]) -> dict[str, int]:
    usage: dict[str, int] = {_CLAIM_COUNT: ONE}
    for choices in requests:
        most: dict[str, int] = {}
        for choice in choices:
            count = _MOST_DEVICES if choice.count is None else choice.count
            most[choice.device_class] = max(most.get(choice.device_class, 0), count)
        for device_class, count in most.items():
            name = f"{device_class}{accelerators.DEVICES_OF_CLASS}"
            usage[name] = usage.get(name, 0) + count * ONE
    return usage


def uncounted(
    template: PodTemplate, patterns: tuple[str, ...] | None, ctx: Context, others: Collection[str] | None = None
) -> dict[Reason, dict[int, str]]:
    """The claims with an unknown number of accelerators, by reason, as {index: name}.

    If `others` is not None, the result also has claims for classes that are neither accelerators nor in `others`. If
    `patterns` is None, the result has the claims with an unknown number of devices of any kind. Shared claims are then
    left out, because quotas count them only once.
    """
    unknown: dict[Reason, dict[int, str]] = {}
    for index, claim in enumerate(_claims(template)):
        if claim is not None and (reason := _unknown(claim, patterns, ctx, others)) is not None:
            unknown.setdefault(reason, {})[index] = claim.name
    return unknown


def _unknown(
    claim: PodResourceClaim, patterns: tuple[str, ...] | None, ctx: Context, others: Collection[str] | None
) -> Reason | None:
    name = claim.resource_claim_template_name
    if not name:
        if patterns is None or not claim.resource_claim_name:  # the API server rejects a claim with neither name
            return None
        why = f'pods share it (ResourceClaim "{claim.resource_claim_name}")'
        return Reason(why, "Use a ResourceClaimTemplate where each pod is to have GPUs of its own.")
    template = ctx.view.get(RESOURCE_CLAIM_TEMPLATES, (ctx.namespace, name))
    if isinstance(template, Answer):
        return _unseen(RESOURCE_CLAIM_TEMPLATES.kind, name, template)
    if patterns is None:
        return None
    for choice in (choice for choices in template.requests for choice in choices):
        if reason := _vague(choice, name, patterns, ctx) or _foreign(choice, patterns, ctx, others):
            return reason
    return None


def _vague(choice: DeviceChoice, template: str, patterns: tuple[str, ...], ctx: Context) -> Reason | None:
    least, most = _bounds(choice, patterns, ctx)
    if most is not None:
        return None
    if least:
        why = f'its template ("{template}") requests all devices of a node'
        return Reason(why, "Use one with allocationMode: ExactCount and a count.")
    device_class = ctx.view.get(DEVICE_CLASSES, choice.device_class)
    answer = device_class if isinstance(device_class, Answer) else UNKNOWN
    return _unseen(DEVICE_CLASSES.kind, choice.device_class, answer)


def _foreign(
    choice: DeviceChoice, patterns: tuple[str, ...], ctx: Context, others: Collection[str] | None
) -> Reason | None:
    if others is None or choice.admin or choice.device_class in others or _bounds(choice, patterns, ctx) != (0, 0):
        return None
    why = f'its DeviceClass ("{choice.device_class}") is not allowed'
    return Reason(why, "Use a DeviceClass of accelerators, or ask your administrator to allow this one.")


def _unseen(kind: str, name: str, answer: Answer) -> Reason:
    if answer is ABSENT:
        called = "template" if kind == RESOURCE_CLAIM_TEMPLATES.kind else kind
        return Reason(f'its {called} ("{name}") does not exist', "Check the name: the pods wait until it exists.")
    plural = f"{kind}{'es' if kind.endswith('s') else 's'}"
    fix = "Keep within the limits: its devices are not counted here."
    return Reason(f"{plural} cannot be read", fix, certain=False)


def _requests(claim_template: str, namespace: str, view: ClusterView) -> Sequence[tuple[DeviceChoice, ...]] | None:
    """For each request of the claim template, the choices; None if the template is unknown or missing."""
    template = view.get(RESOURCE_CLAIM_TEMPLATES, (namespace, claim_template))
    return template.requests if isinstance(template, ResourceClaimTemplate) else None


def _claims(template: PodTemplate) -> Sequence[PodResourceClaim | None]:
    return (template.spec and template.spec.resource_claims) or []


def _claimed(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> Iterator[Devices]:
    for claim in _claims(template):
        if claim is None:
            continue
        requests = _requests(claim.resource_claim_template_name or "", ctx.namespace, ctx.view)
        if requests is None:
            yield Devices(most=None)
        for choices in requests or ():
            bounds = [_bounds(choice, patterns, ctx) for choice in choices]
            most = [most for _, most in bounds]
            yield Devices(
                least=min(least for least, _ in bounds),
                most=None if None in most else max(number or 0 for number in most),
                requested=max(least if most is None else most for least, most in bounds),
            )


def _bounds(choice: DeviceChoice, patterns: tuple[str, ...], ctx: Context) -> tuple[int, int | None]:
    """(minimum, maximum) number of accelerators; the maximum is None if it is unknown."""
    is_accelerator = not choice.admin and _is_accelerator(choice.device_class, patterns, ctx)
    if is_accelerator is None:
        return 0, None
    if not is_accelerator:
        return 0, 0
    return (1, None) if choice.count is None else (choice.count, choice.count)


def _is_accelerator(device_class: str, patterns: tuple[str, ...], ctx: Context) -> bool | None:
    """Whether the class is for accelerators; None if only the DeviceClass could show this and it cannot be read."""
    if accelerators.is_accelerator(accelerators.DEVICE_CLASS + device_class, patterns):
        return True
    stored = ctx.view.get(DEVICE_CLASSES, device_class)
    return accelerators.is_accelerator(stored.extended_resource, patterns) if isinstance(stored, DeviceClass) else None
