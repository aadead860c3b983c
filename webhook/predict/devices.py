"""The accelerators that a pod gets, by extended resources and by claims (dynamic resource allocation).

As an extended resource, a device class has two names: the name in its `extendedResourceName` field, and
`deviceclass.resource.kubernetes.io/` followed by the name of the class. A claim for the class matches a pattern of
accelerators if either name matches.
https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/#extended-resource

With a ResourceClaimTemplate, each pod gets a separate claim. Pods that name the same ResourceClaim share it, so the
number of devices of each pod is unknown. The number is also unknown if the template or the class cannot be read.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from webhook.api import accelerators
from webhook.api.mpijob import ReplicaSpec
from webhook.api.pod import Container, PodResourceClaim, PodTemplate
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
# Quotas charge this maximum of a claim (`AllocationResultsMaxSize`) for "all devices of a node".
_MOST_DEVICES: Final = 32
_SPECIAL: Final = re.compile(r"([*?\[])")


class Devices(msgspec.Struct, frozen=True, gc=False):
    """The minimum and maximum number of accelerators; the maximum is None if it is unknown."""

    least: int = 0
    most: int | None = 0
    asked: int = 0
    """The number to compare with limits: the largest of several choices, or the minimum if the number is unknown."""
    by_claim: bool = False
    """Whether any of the accelerators are requested by claims."""

    @property
    def known(self) -> int:
        """The exact number; 0 if it is uncertain."""
        return self.least if self.least == self.most else 0


class Reason(msgspec.Struct, frozen=True):
    """Why the number of a claim's accelerators is unknown."""

    why: str
    fix: str
    known: bool = True
    """False if the cluster's objects could not be read; such a claim does not cause a rejection."""


def names(patterns: tuple[str, ...], ctx: Context) -> tuple[str, ...]:
    """The patterns of accelerators, and the extended resources of device classes that the patterns match."""
    return ctx.once(_names, patterns)


def _names(patterns: tuple[str, ...], ctx: Context) -> tuple[str, ...]:
    classes = ctx.view.all(DEVICE_CLASSES)
    if classes is UNKNOWN:
        return patterns
    matching = (
        each
        for each in classes.values()
        if accelerators.is_accelerator(accelerators.DEVICE_CLASS + each.name, patterns)
    )
    resources = (each.extended_resource for each in matching)
    return (*patterns, *(_SPECIAL.sub(r"[\1]", name) for name in resources if name))


def backed(name: str, ctx: Context) -> bool:
    """Whether a device class backs the extended resource; nodes do not list such a resource."""
    return name.startswith(accelerators.DEVICE_CLASS) or name in ctx.once(_extended_resources, ctx.view)


def _extended_resources(view: ClusterView, _: Context) -> frozenset[str]:
    """The extended resources of all device classes."""
    classes = view.all(DEVICE_CLASSES)
    return frozenset(() if classes is UNKNOWN else (each.extended_resource for each in classes.values()))


def asking(template: PodTemplate, ctx: Context) -> list[tuple[str, Container]]:
    """(path in the template, container) for containers that request resources with a domain; cached per review."""
    return ctx.once(_asking, template)


def _asking(template: PodTemplate, _: Context) -> list[tuple[str, Container]]:
    return accelerators.asking_for_devices(template)


def of_pod(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> Devices:
    """The accelerators of a pod of this template, cached per review; `patterns` match their resources."""
    cached = ctx.once(_by_patterns, template)
    if (result := cached.get(patterns)) is None:
        result = cached[patterns] = _of_pod(template, patterns, ctx)
    return result


def _by_patterns(_: PodTemplate, __: Context) -> dict[tuple[str, ...], Devices]:
    """The cache that `of_pod` fills in. It stays small: rules and policies have few patterns."""
    return {}


def _of_pod(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> Devices:
    requested, claims = ctx.once(_requested, template), _claims(template)
    if not requested and not claims:
        return Devices()
    wanted = names(patterns, ctx)
    matching = [name for name in requested if accelerators.is_accelerator(name, wanted)]
    counted = _counted(template, wanted) if matching else 0
    if not claims:
        return Devices(counted, counted, counted)
    claimed = list(_claimed(template, patterns, ctx))
    most = [each.most for each in claimed]
    return Devices(
        least=counted + sum(each.least for each in claimed),
        most=None if None in most else counted + sum(each or 0 for each in most),
        asked=counted + sum(each.asked for each in claimed),
        by_claim=any(each.least != 0 or each.most != 0 for each in claimed),
    )


def _requested(template: PodTemplate, ctx: Context) -> set[str]:
    return accelerators.extended_resources([container for _, container in asking(template, ctx)])


def _counted(template: PodTemplate, wanted: tuple[str, ...]) -> int:
    """The accelerators requested as extended resources."""
    return accelerators.pod_total(template, lambda container: accelerators.accelerators(container, wanted))


def claimed_resource(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> str:
    """The quota resource for all accelerators of a pod; empty unless one request of one claim has all of them."""
    if accelerators.pod_total(template, lambda container: accelerators.accelerators(container, names(patterns, ctx))):
        return ""
    matching = []
    for claim in _claims(template):
        name = (claim and claim.resource_claim_template_name) or ""
        claim_template = ctx.view.get(RESOURCE_CLAIM_TEMPLATES, (ctx.namespace, name))
        if not isinstance(claim_template, ResourceClaimTemplate):
            return ""
        requests = claim_template.requests
        matching += [each for each in requests if any(_bounds(one, patterns, ctx) != (0, 0) for one in each)]
    choices = matching[0] if len(matching) == 1 else ()
    certain = len(choices) == 1 and _bounds(choices[0], patterns, ctx)[1] is not None
    return f"{choices[0].device_class}{accelerators.DEVICES_OF_CLASS}" if certain else ""


def of_each(replica: ReplicaSpec | None, patterns: tuple[str, ...], ctx: Context) -> int:
    """The number of accelerators that a pod of this role requests."""
    return 0 if replica is None else of_pod(replica.template, patterns, ctx).asked


def charges(claim_templates: Iterable[str], ctx: Context) -> tuple[Charge, ...]:
    """The quota use of a pod's claims; for an unknown template it does not include devices.

    https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/quota/v1/evaluator/core/resource_claims.go
    """
    result = []
    for name in claim_templates:
        template = ctx.view.get(RESOURCE_CLAIM_TEMPLATES, (ctx.namespace, name))
        requests = template.requests if isinstance(template, ResourceClaimTemplate) else ()
        result.append(Charge(ObjectTraits(), _claim_usage(requests)))
    return tuple(result)


def by_claims(templates: Iterable[str], namespace: str, view: ClusterView) -> Iterator[tuple[str, int]]:
    """(name in metrics, number) of the accelerators from the claims of a pod; uncertain numbers are left out.

    If a request has several choices, the first is used: the scheduler prefers it.
    """
    for name in templates:
        template = view.get(RESOURCE_CLAIM_TEMPLATES, (namespace, name))
        for first, *_ in template.requests if isinstance(template, ResourceClaimTemplate) else ():
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

    With `others`, a claim also counts as unknown if its DeviceClass has no accelerators and is not in `others`. If
    `patterns` is None, the result has the claims with an unknown number of devices of any kind, without shared claims:
    quotas charge a shared claim only once.
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
    for choice in (choice for each in template.requests for choice in each):
        if reason := _vague(choice, name, patterns, ctx) or _foreign(choice, patterns, ctx, others):
            return reason
    return None


def _vague(choice: DeviceChoice, template: str, patterns: tuple[str, ...], ctx: Context) -> Reason | None:
    """Why the number of accelerators of a choice is unknown."""
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
    """Why the DeviceClass is not allowed: it has no accelerators and is not in `others`."""
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
    return Reason(f"{plural} cannot be read", fix, known=False)


def _claims(template: PodTemplate) -> Sequence[PodResourceClaim | None]:
    return (template.spec and template.spec.resource_claims) or []


def _claimed(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> Iterator[Devices]:
    """The devices of each request in the pod's claims."""
    for claim in _claims(template):
        if claim is None:
            continue
        name = claim.resource_claim_template_name or ""
        claim_template = ctx.view.get(RESOURCE_CLAIM_TEMPLATES, (ctx.namespace, name))
        if not isinstance(claim_template, ResourceClaimTemplate):
            yield Devices(most=None)
            continue
        for choices in claim_template.requests:
            bounds = [_bounds(choice, patterns, ctx) for choice in choices]
            most = [most for _, most in bounds]
            yield Devices(
                least=min(least for least, _ in bounds),
                most=None if None in most else max(each or 0 for each in most),
                asked=max(least if most is None else most for least, most in bounds),
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
    """Whether the class is one of accelerators; None if this depends on the DeviceClass, which cannot be read."""
    if accelerators.is_accelerator(accelerators.DEVICE_CLASS + device_class, patterns):
        return True
    known = ctx.view.get(DEVICE_CLASSES, device_class)
    return accelerators.is_accelerator(known.extended_resource, patterns) if isinstance(known, DeviceClass) else None
