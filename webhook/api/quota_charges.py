"""The amounts that quotas count for a job's pods, claims and other objects, by the quotas' resource names."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import msgspec

from webhook.api import pod_resources, quantity
from webhook.api.accelerators import DEVICE_CLASS
from webhook.api.pod import Claim, PodSpec, PodTemplate
from webhook.api.pod_resources import Amounts, PodResources
from webhook.api.quantity import Quantity
from webhook.api.quota_scopes import ClaimTraits, ObjectTraits, PodTraits, Traits

ONE: Final = Quantity(quantity.NANO)

_REQUESTED: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"
REQUESTS: Final = "requests."
_STORAGE: Final = "requests.storage"
_CLAIMS: Final = "persistentvolumeclaims"
_BY_CLASS: Final = ".storageclass.storage.k8s.io/"
# Kubernetes' own names. Resources with a device class are extended resources although their names match.
_NATIVE: Final = "kubernetes.io/"


class Charge(msgspec.Struct, frozen=True):
    """The amounts of one object (in billionths), and the traits that decide which quotas count it."""

    traits: Traits
    usage: dict[str, int]


@dataclass(frozen=True)
class PodShape:
    """The parts of a pod template that quotas count: requests, traits for scopes, and the pod's claims."""

    resources: PodResources
    runtime_class: str = ""
    priority_class: str = ""
    terminating: bool = False
    cross_namespace: bool = False
    pod_level: bool = False
    """The pod has pod-level resources, so its containers do not decide whether it is best effort."""
    claims: tuple["ClaimShape", ...] = ()
    device_claims: tuple[str, ...] = ()
    """The ResourceClaimTemplates from which each pod gets a claim."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once because shapes are large and looked up often."""
        return hash((self.resources, self.runtime_class, self.priority_class, self.claims, self.device_claims))


class ClaimShape(msgspec.Struct, frozen=True):
    """A claim with the lifetime of a pod. Without a class it gets the cluster's default, which is unknown here."""

    storage_class: str = ""
    volume_attributes_class: str = ""
    storage: Quantity | None = None


def pod_shape(template: PodTemplate, resources: PodResources | None = None) -> PodShape:
    """The shape of a template. Without `resources` they are computed."""
    spec = template.spec or PodSpec()
    deadline = spec.active_deadline_seconds
    ephemeral = (volume.ephemeral for volume in spec.volumes or () if volume.ephemeral is not None)
    claims = (each.volume_claim_template for each in ephemeral)
    return PodShape(
        resources=pod_resources.of_template(template) if resources is None else resources,
        runtime_class=spec.runtime_class_name or "",
        priority_class=spec.priority_class_name or "",
        terminating=deadline is not None and deadline >= 0,
        cross_namespace=_looks_elsewhere(spec),
        pod_level=spec.resources is not None,
        claims=tuple(_claim(claim) for claim in claims if claim is not None),
        device_claims=tuple(
            each.resource_claim_template_name
            for each in spec.resource_claims or ()
            if each is not None and each.resource_claim_template_name
        ),
    )


def pod_charges(shape: PodShape, *, certain: bool, default_priority: str | None) -> tuple[Charge, ...]:
    """The charge of one pod, then of each of its claims.

    The resources include the API server's defaults. Unless `certain`, the API server may add more resources.
    `default_priority` is the PriorityClass of pods without one; None if it is unknown.
    """
    best_effort: bool | None = _is_best_effort(shape)
    if best_effort and not certain:
        best_effort = None
    traits = PodTraits(
        best_effort=best_effort,
        terminating=shape.terminating,
        priority_class=shape.priority_class or default_priority,
        cross_namespace=shape.cross_namespace,
    )
    return (Charge(traits, pod_usage(shape.resources)), *map(_claim_charge, shape.claims))


def pod_usage(resources: PodResources) -> dict[str, int]:
    """The usage of one pod as in Kubernetes' `podComputeUsageHelper`, and the count of one pod."""
    usage: dict[str, int] = {"pods": ONE, "count/pods": ONE}
    for name, amount in _positive(pod_resources.requests(resources)):
        if name in _REQUESTED or name.startswith(_HUGE_PAGES):
            usage[name] = amount
            usage[REQUESTS + name] = amount
        elif is_extended(name):
            usage[REQUESTS + name] = amount
    for name, amount in _positive(pod_resources.limits(resources)):
        if name in _REQUESTED:
            usage[f"limits.{name}"] = amount
    return usage


def _positive(amounts: Amounts) -> Iterator[tuple[str, int]]:
    """Negative amounts become 0: a pod with such an amount is never created and must not reduce the total."""
    return ((name, max(amount, 0)) for name, amount in amounts.items())


@cache
def object_charges(*, launcher: bool) -> tuple[Charge, ...]:
    """The job, and the objects that the operator creates for it besides pods: Service, ConfigMap, Secret and launcher
    Job.
    """
    names = ["count/mpijobs.kubeflow.org"]
    for kind in ("services", "configmaps", "secrets"):
        names += kind, f"count/{kind}"
    if launcher:
        names.append("count/jobs.batch")
    return (Charge(ObjectTraits(), dict.fromkeys(names, ONE)),)


def is_extended(name: str) -> bool:
    """Whether quotas count the resource as `requests.<name>`."""
    if name.startswith(DEVICE_CLASS):
        return True
    return "/" in name and _NATIVE not in name and not name.startswith(REQUESTS)


def _claim_charge(claim: ClaimShape) -> Charge:
    usage: dict[str, int] = {_CLAIMS: ONE, f"count/{_CLAIMS}": ONE}
    if claim.storage is not None:
        usage[_STORAGE] = max(claim.storage, 0)
    if claim.storage_class:
        usage.update(
            {f"{claim.storage_class}{_BY_CLASS}{name}": usage[name] for name in (_CLAIMS, _STORAGE) if name in usage}
        )
    return Charge(ClaimTraits(claim.volume_attributes_class), usage)


def _claim(claim: Claim) -> ClaimShape:
    spec = claim.spec
    requests = pod_resources.read_amounts(spec.resources.requests) if spec and spec.resources else {}
    storage = requests.get("storage")
    return ClaimShape(
        storage_class=claim.storage_class or "",
        volume_attributes_class=(spec and spec.volume_attributes_class_name) or "",
        storage=None if storage is None else Quantity(quantity.whole(storage) * quantity.NANO),
    )


def _is_best_effort(shape: PodShape) -> bool:
    """`ComputePodQOS`: no container requests or limits CPU or memory."""
    resources = shape.resources
    if shape.pod_level:
        stated = (resources.requests, resources.limits)
        return not any(amounts.get(name, 0) > 0 for amounts in stated for name in ("cpu", "memory"))
    return not any(
        amounts.get(name, 0) > 0
        for container in resources.containers
        for amounts in (container.requests, container.limits)
        for name in ("cpu", "memory")
    )


def _looks_elsewhere(spec: PodSpec) -> bool:
    """Whether the pod affinity refers to other namespaces."""
    if spec.affinity is None:
        return False
    return any(
        term.namespaces or term.namespace_selector is not None
        for affinity in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity)
        if affinity is not None
        for term in affinity.terms
    )
