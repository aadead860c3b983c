"""The accelerators that a pod gets, by extended resources and by claims (dynamic resource allocation).

Devices of a class have two names as extended resources, and a claim on the class counts as both: the one that the class
names, and `deviceclass.resource.kubernetes.io/` with the name of the class, which every class has.
https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/#extended-resource

A template gives each pod a claim of its own. Several pods that name the same claim share it, so the number of devices
for each is unknown, as it is if the template or the class cannot be read.
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
# The maximum of a claim (`AllocationResultsMaxSize`), which quotas count for "all devices of a node".
_MOST_DEVICES: Final = 32
_SPECIAL: Final = re.compile(r"([*?\[])")


class Devices(msgspec.Struct, frozen=True, gc=False):
    """The minimum and maximum number of accelerators; None for an unknown maximum."""

    least: int = 0
    most: int | None = 0
    asked: int = 0
    """The number that limits are compared with: the largest of several choices, and the least of an unknown number."""
    by_claim: bool = False
    """Whether any of them come by claims."""

    @property
    def known(self) -> int:
        """The number; 0 if it is uncertain."""
        return self.least if self.least == self.most else 0


class Reason(msgspec.Struct, frozen=True):
    """Why the number of a claim's accelerators is unknown."""

    why: str
    fix: str
    known: bool = True
    """Whether the cluster was read: unreadable objects never reject a job."""


def names(patterns: tuple[str, ...], ctx: Context) -> tuple[str, ...]:
    """The patterns of accelerators, and the extended resources whose devices they match."""
    return ctx.once(_names, patterns)


def _names(patterns: tuple[str, ...], ctx: Context) -> tuple[str, ...]:
    classes = ctx.view.all(DEVICE_CLASSES)
    if classes is UNKNOWN:
        return patterns
    found = (
        each
        for each in classes.values()
        if accelerators.is_accelerator(accelerators.DEVICE_CLASS + each.name, patterns)
    )
    behind = (each.extended_resource for each in found)
    return (*patterns, *(_SPECIAL.sub(r"[\1]", name) for name in behind if name))


def backed(name: str, ctx: Context) -> bool:
    """Whether the extended resource is backed by a device class; then no node shows it."""
    return name.startswith(accelerators.DEVICE_CLASS) or name in ctx.once(_extended_resources, ctx.view)


def _extended_resources(view: ClusterView, _: Context) -> frozenset[str]:
    """The extended resources of all device classes."""
    classes = view.all(DEVICE_CLASSES)
    return frozenset(() if classes is UNKNOWN else (each.extended_resource for each in classes.values()))


def asking(template: PodTemplate, ctx: Context) -> list[tuple[str, Container]]:
    """(path in the template, container) of those that request resources with a domain, computed once in a review."""
    return ctx.once(_asking, template)


def _asking(template: PodTemplate, _: Context) -> list[tuple[str, Container]]:
    return accelerators.asking_for_devices(template)


def of_pod(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> Devices:
    """The accelerators of a pod of this template, counted once in a review; `patterns` match their resources."""
    known = ctx.once(_by_patterns, template)
    if (found := known.get(patterns)) is None:
        found = known[patterns] = _of_pod(template, patterns, ctx)
    return found


def _by_patterns(_: PodTemplate, __: Context) -> dict[tuple[str, ...], Devices]:
    """Filled in by `of_pod`: rules and policies have few patterns."""
    return {}


def _of_pod(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> Devices:
    counted = _counted(template, names(patterns, ctx)) if asking(template, ctx) else 0
    if not _claims(template):
        return Devices(counted, counted, counted)
    claimed = list(_claimed(template, patterns, ctx))
    most = [each.most for each in claimed]
    return Devices(
        least=counted + sum(each.least for each in claimed),
        most=None if None in most else counted + sum(each or 0 for each in most),
        asked=counted + sum(each.asked for each in claimed),
        by_claim=any(each.least != 0 or each.most != 0 for each in claimed),
    )


def _counted(template: PodTemplate, wanted: tuple[str, ...]) -> int:
    """The accelerators requested as extended resources."""
    return accelerators.pod_total(template, lambda container: accelerators.accelerators(container, wanted))


def claimed_resource(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> str:
    """The quotas' resource for all the accelerators of a pod; empty unless one request of one claim has them."""
    if accelerators.pod_total(template, lambda container: accelerators.accelerators(container, names(patterns, ctx))):
        return ""
    matching = []
    for claim in _claims(template):
        name = (claim and claim.resource_claim_template_name) or ""
        known = ctx.view.get(RESOURCE_CLAIM_TEMPLATES, (ctx.namespace, name))
        if not isinstance(known, ResourceClaimTemplate):
            return ""
        matching += [each for each in known.requests if any(_bounds(one, patterns, ctx) != (0, 0) for one in each)]
    choices = matching[0] if len(matching) == 1 else ()
    certain = len(choices) == 1 and _bounds(choices[0], patterns, ctx)[1] is not None
    return f"{choices[0].device_class}{accelerators.DEVICES_OF_CLASS}" if certain else ""


def of_each(replica: ReplicaSpec | None, patterns: tuple[str, ...], ctx: Context) -> int:
    """The number of accelerators that a pod of this role requests."""
    return 0 if replica is None else of_pod(replica.template, patterns, ctx).asked


def charges(claim_templates: Iterable[str], ctx: Context) -> tuple[Charge, ...]:
    """The quota use of a pod's claims; the devices of an unknown template are not included.

    https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/quota/v1/evaluator/core/resource_claims.go
    """
    found = []
    for name in claim_templates:
        template = ctx.view.get(RESOURCE_CLAIM_TEMPLATES, (ctx.namespace, name))
        requests = template.requests if isinstance(template, ResourceClaimTemplate) else ()
        found.append(Charge(ObjectTraits(), _claim_usage(requests)))
    return tuple(found)


def by_claims(templates: Iterable[str], namespace: str, view: ClusterView) -> Iterator[tuple[str, int]]:
    """The accelerators that a pod gets by its own claims, by their names in metrics, as far as the number is known.

    Of several choices the first is used, which the pod gets if possible.
    """
    for name in templates:
        found = view.get(RESOURCE_CLAIM_TEMPLATES, (namespace, name))
        for first, *_ in found.requests if isinstance(found, ResourceClaimTemplate) else ():
            known = accelerators.name_in_metrics(accelerators.DEVICE_CLASS + first.device_class)
            if known and first.count and not first.admin:
                yield known, first.count


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
    """The claims with an unknown number of accelerators: index and name, by the reason.

    With `others`, claims of DeviceClasses that are neither accelerators nor among these count as unknown. Without
    `patterns`, the claims with an unknown number of devices of any kind; quotas count shared claims only once.
    """
    found: dict[Reason, dict[int, str]] = {}
    for index, claim in enumerate(_claims(template)):
        if claim is not None and (reason := _unknown(claim, patterns, ctx, others)) is not None:
            found.setdefault(reason, {})[index] = claim.name
    return found


def _unknown(
    claim: PodResourceClaim, patterns: tuple[str, ...] | None, ctx: Context, others: Collection[str] | None
) -> Reason | None:
    name = claim.resource_claim_template_name
    if not name:
        if patterns is None or not claim.resource_claim_name:  # a claim with neither is not stored
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
        why = f'its template ("{template}") takes all of a node'
        return Reason(why, "Use one with allocationMode: ExactCount and a count.")
    known = ctx.view.get(DEVICE_CLASSES, choice.device_class)
    seen = known if isinstance(known, Answer) else UNKNOWN
    return _unseen(DEVICE_CLASSES.kind, choice.device_class, seen)


def _foreign(
    choice: DeviceChoice, patterns: tuple[str, ...], ctx: Context, others: Collection[str] | None
) -> Reason | None:
    """Why its class is ignored: it has no accelerators and is not among `others`."""
    if others is None or choice.admin or choice.device_class in others or _bounds(choice, patterns, ctx) != (0, 0):
        return None
    why = f'its DeviceClass ("{choice.device_class}") is not an allowed one'
    return Reason(why, "Use a DeviceClass of accelerators, or ask your administrator to allow this one.")


def _unseen(kind: str, name: str, answer: Answer) -> Reason:
    if answer is ABSENT:
        called = "template" if kind == RESOURCE_CLAIM_TEMPLATES.kind else kind
        return Reason(
            f'its {called} ("{name}") does not exist', "Check its name, or have it created: the pods wait for it."
        )
    plural = f"{kind}{'es' if kind.endswith('s') else 's'}"
    fix = "Keep within the bounds: they are not counted here."
    return Reason(f"{plural} cannot be read", fix, known=False)


def _claims(template: PodTemplate) -> Sequence[PodResourceClaim | None]:
    return (template.spec and template.spec.resource_claims) or []


def _claimed(template: PodTemplate, patterns: tuple[str, ...], ctx: Context) -> Iterator[Devices]:
    """The devices of each request of each claim of the pod."""
    for claim in _claims(template):
        if claim is None:
            continue
        found = ctx.view.get(RESOURCE_CLAIM_TEMPLATES, (ctx.namespace, claim.resource_claim_template_name or ""))
        if not isinstance(found, ResourceClaimTemplate):
            yield Devices(most=None)
            continue
        for choices in found.requests:
            bounds = [_bounds(choice, patterns, ctx) for choice in choices]
            most = [most for _, most in bounds]
            yield Devices(
                least=min(least for least, _ in bounds),
                most=None if None in most else max(each or 0 for each in most),
                asked=max(least if most is None else most for least, most in bounds),
            )


def _bounds(choice: DeviceChoice, patterns: tuple[str, ...], ctx: Context) -> tuple[int, int | None]:
    """(at least, at most), None for an unknown number."""
    counts = not choice.admin and _is_accelerator(choice.device_class, patterns, ctx)
    if counts is None:
        return 0, None
    if not counts:
        return 0, 0
    return (1, None) if choice.count is None else (choice.count, choice.count)


def _is_accelerator(device_class: str, patterns: tuple[str, ...], ctx: Context) -> bool | None:
    """None if that depends on the DeviceClass, which cannot be read."""
    if accelerators.is_accelerator(accelerators.DEVICE_CLASS + device_class, patterns):
        return True
    found = ctx.view.get(DEVICE_CLASSES, device_class)
    return accelerators.is_accelerator(found.extended_resource, patterns) if isinstance(found, DeviceClass) else None
