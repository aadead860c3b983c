"""The amounts of quota that a job's pods, claims and other objects use, by the resource names of quotas."""

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
# Part of Kubernetes' own resource names. The resource of a DeviceClass contains it too, but is an extended resource.
_NATIVE: Final = "kubernetes.io/"


class Charge(msgspec.Struct, frozen=True):
    """Amounts are in billionths. The traits decide which quotas count the object."""

    traits: Traits
    usage: dict[str, int]


@dataclass(frozen=True)
class PodShape:
    resources: PodResources
    runtime_class: str = ""
    priority_class: str = ""
    terminating: bool = False
    cross_namespace: bool = False
    pod_level: bool = False
    """Whether the pod has pod-level resources, which then decide whether the pod is best effort."""
    claims: tuple["ClaimShape", ...] = ()
    device_claims: tuple[str, ...] = ()
    """The ResourceClaimTemplates from which each pod gets a claim."""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash is cached, because shapes are large and looked up often."""
        return hash((self.resources, self.runtime_class, self.priority_class, self.claims, self.device_claims))


class ClaimShape(msgspec.Struct, frozen=True):
    """A claim that is deleted with its pod."""

    storage_class: str = ""
    volume_attributes_class: str = ""
    storage: Quantity | None = None


def pod_shape(template: PodTemplate, resources: PodResources | None = None) -> PodShape:
    """The shape of a template. A caller that already has the template's resources passes them as `resources`."""
    spec = template.spec or PodSpec()
    deadline = spec.active_deadline_seconds
    claims = (volume.ephemeral.volume_claim_template for volume in spec.volumes or () if volume.ephemeral is not None)
    return PodShape(
        resources=pod_resources.of_template(template) if resources is None else resources,
        runtime_class=spec.runtime_class_name or "",
        priority_class=spec.priority_class_name or "",
        terminating=deadline is not None and deadline >= 0,
        cross_namespace=_looks_elsewhere(spec),
        pod_level=spec.resources is not None,
        claims=tuple(_claim(claim) for claim in claims if claim is not None),
        device_claims=tuple(
            claim.resource_claim_template_name
            for claim in filter(None, spec.resource_claims or ())
            if claim.resource_claim_template_name
        ),
    )


def pod_charges(shape: PodShape, *, certain: bool, default_priority: str | None) -> tuple[Charge, ...]:
    """The charge of one pod, then of each of its claims.

    `shape` includes the API server's defaults. `certain` is False if the API server may add more resources.
    `default_priority` is the PriorityClass of pods that name no PriorityClass; None if it is unknown.
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
    """Negative amounts become 0: a pod with a negative amount is never created and must not reduce the total."""
    return ((name, max(amount, 0)) for name, amount in amounts.items())


@cache
def object_charges(*, launcher: bool) -> tuple[Charge, ...]:
    """The charge of the job and of the Service, ConfigMap, Secret and launcher Job that the operator creates."""
    names = ["count/mpijobs.kubeflow.org"]
    for kind in ("services", "configmaps", "secrets"):
        names += kind, f"count/{kind}"
    if launcher:
        names.append("count/jobs.batch")
    return (Charge(ObjectTraits(), dict.fromkeys(names, ONE)),)


def is_extended(name: str) -> bool:
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
    """Whether there is no request or limit of CPU or memory, as in `ComputePodQOS`."""
    parts = (shape.resources,) if shape.pod_level else shape.resources.containers
    return not any(
        amounts.get(name, 0) > 0
        for part in parts
        for amounts in (part.requests, part.limits)
        for name in ("cpu", "memory")
    )


def _looks_elsewhere(spec: PodSpec) -> bool:
    if spec.affinity is None:
        return False
    affinities = filter(None, (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity))
    return any(
        term.namespaces or term.namespace_selector is not None for affinity in affinities for term in affinity.terms
    )
