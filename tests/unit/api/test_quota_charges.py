"""The quota use of the objects of a job. tests/conformance compares the results with the API server."""

from typing import Any

import msgspec
import pytest

from webhook.api import quantity
from webhook.api.pod import PodTemplate
from webhook.api.quota_charges import Charge, is_extended, object_charges, pod_charges, pod_shape
from webhook.api.quota_scopes import ClaimTraits, ObjectTraits, PodTraits, Scope, Traits
from webhook.cluster.resources.resource_quotas import ResourceQuota


def charges(spec: dict[str, Any], *, certain: bool = True, default_priority: str | None = "") -> tuple[Charge, ...]:
    shape = pod_shape(msgspec.convert({"spec": spec}, PodTemplate))
    return pod_charges(shape, certain=certain, default_priority=default_priority)


def container(**resources: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": resources}]}


def shown(charge: Charge) -> dict[str, str]:
    return {name: quantity.format(quantity.Quantity(amount)) for name, amount in sorted(charge.usage.items())}


def test_charges_of_a_pod() -> None:
    limits = {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": 2, "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}
    [charge] = charges(container(limits=limits, requests={"cpu": "500m"}))
    assert shown(charge) == {
        "count/pods": "1",
        "cpu": "500m",
        "ephemeral-storage": "1Gi",
        "hugepages-2Mi": "4Mi",
        "limits.cpu": "2",
        "limits.ephemeral-storage": "1Gi",
        "limits.memory": "4Gi",
        "memory": "4Gi",
        "pods": "1",
        "requests.cpu": "500m",
        "requests.ephemeral-storage": "1Gi",
        "requests.hugepages-2Mi": "4Mi",
        "requests.memory": "4Gi",
        "requests.nvidia.com/gpu": "2",
    }


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("nvidia.com/gpu", True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("cpu", False),
        ("kubernetes.io/thing", False),
        ("requests.nvidia.com/gpu", False),
    ],
)
def test_extended_resources_are_recognised(name: str, extended: bool) -> None:
    assert is_extended(name) is extended


@pytest.mark.parametrize(
    ("spec", "certain", "expected"),
    [
        ({}, True, PodTraits(best_effort=True)),
        ({}, False, PodTraits(best_effort=None)),
        (container(limits={"nvidia.com/gpu": 1}), True, PodTraits(best_effort=True)),
        (container(limits={"cpu": 0}), True, PodTraits(best_effort=True)),
        (container(requests={"cpu": 1}), False, PodTraits()),
        (container(requests={"cpu": 1}) | {"resources": {}}, True, PodTraits(best_effort=True)),
        ({"resources": {"limits": {"memory": "1Gi"}}}, True, PodTraits()),
        (container(limits={"cpu": 1}) | {"activeDeadlineSeconds": 1}, True, PodTraits(terminating=True)),
    ],
)
def test_traits_of_pods_for_scopes(spec: dict[str, Any], certain: bool, expected: PodTraits) -> None:
    assert charges(spec, certain=certain)[0].traits == expected


@pytest.mark.parametrize("default", ["", "usual", None])
def test_default_priority_class_of_a_pod(default: str | None) -> None:
    assert charges(container(limits={"cpu": 1}), default_priority=default)[0].traits == PodTraits(
        priority_class=default
    )
    named = container(limits={"cpu": 1}) | {"priorityClassName": "high"}
    assert charges(named, default_priority=default)[0].traits == PodTraits(priority_class="high")


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(
    ("term", "elsewhere"),
    [({}, False), ({"namespaces": []}, False), ({"namespaces": ["x"]}, True), ({"namespaceSelector": {}}, True)],
)
def test_pod_affinity_to_other_namespaces_is_a_trait(kind: str, term: dict[str, Any], elsewhere: bool) -> None:
    for affinity in (
        {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
    ):
        traits = charges({"affinity": {kind: affinity}})[0].traits
        assert isinstance(traits, PodTraits)
        assert traits.cross_namespace is elsewhere


def test_charges_of_a_pods_ephemeral_claims() -> None:
    gold = {"storageClassName": "gold", "volumeAttributesClassName": "fast"}
    resources = {"resources": {"requests": {"storage": "1500m"}}}
    volumes = [
        {"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": gold | resources}}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "c", "emptyDir": {}},
    ]
    _, first, second = charges({"volumes": volumes})
    assert (first.traits, second.traits) == (ClaimTraits("fast"), ClaimTraits())
    assert shown(first) == {
        "count/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "2",
        "persistentvolumeclaims": "1",
        "requests.storage": "2",
    }
    assert shown(second) == {"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1"}


@pytest.mark.parametrize("launcher", [True, False])
def test_charges_of_other_objects_of_a_job(launcher: bool) -> None:
    [charge] = object_charges(launcher=launcher)
    assert charge.traits == ObjectTraits()
    kinds = ("services", "configmaps", "secrets")
    both = {*kinds, *(f"count/{kind}" for kind in kinds), "count/mpijobs.kubeflow.org"}
    assert charge.usage.keys() == both | ({"count/jobs.batch"} if launcher else set())


@pytest.mark.parametrize(
    ("spec", "hard", "missing"),
    [
        ({"containers": [{"name": "a"}]}, ["cpu", "limits.memory"], {"cpu": [0], "limits.memory": [0]}),
        ({"containers": [{"name": "a"}]}, ["pods", "limits.ephemeral-storage", "requests.nvidia.com/gpu"], {}),
        (container(limits={"cpu": 1}), ["cpu", "requests.cpu", "limits.cpu"], {}),
        (container(requests={"cpu": 0}), ["cpu", "limits.cpu"], {"limits.cpu": [0]}),
        (container(limits={"cpu": 1}) | {"initContainers": [{"name": "i"}]}, ["cpu"], {"cpu": [1]}),
        ({"containers": [{"name": "a"}], "resources": {"limits": {"memory": "1Gi"}}}, ["limits.cpu"], {}),
        ({"containers": [{"name": "a"}], "resources": {}}, ["limits.cpu"], {"limits.cpu": [0]}),
    ],
)
def test_resources_that_pods_must_state(spec: dict[str, Any], hard: list[str], missing: dict[str, list[int]]) -> None:
    shape = pod_shape(msgspec.convert({"spec": spec}, PodTemplate))
    quota = ResourceQuota("ns", "q", dict.fromkeys(hard, quantity.parse(1)), {})
    assert quota.unstated(shape.resources) == missing


UNKNOWN = PodTraits(best_effort=None, priority_class=None)


@pytest.mark.parametrize(
    ("scope", "traits", "within"),
    [
        (Scope("Terminating"), PodTraits(terminating=True), True),
        (Scope("PriorityClass"), PodTraits(priority_class="high"), True),
        (Scope("PriorityClass", "In", ("high", "low")), PodTraits(priority_class="high"), True),
        (Scope("PriorityClass", "NotIn", ("high",)), PodTraits(priority_class="high"), False),
        (Scope("PriorityClass", "NotIn", ("high",)), UNKNOWN, False),
        (Scope("PriorityClass", "DoesNotExist"), PodTraits(), True),
        (Scope("VolumeAttributesClass"), ClaimTraits("fast"), True),
        (Scope("VolumeAttributesClass", "NotIn", ("fast",)), ClaimTraits(), True),
        (Scope("NotTerminating"), ObjectTraits(), False),
    ],
)
def test_scopes_match_objects_by_their_traits(scope: Scope, traits: Traits, within: bool) -> None:
    assert traits.meets(scope) is within
    assert ResourceQuota("ns", "q", {}, {}, (scope,)).counts(traits) is within


@pytest.mark.parametrize("traits", [PodTraits(), UNKNOWN, ClaimTraits(), ObjectTraits()])
def test_quota_without_a_scope_applies_to_everything(traits: Traits) -> None:
    assert ResourceQuota("ns", "q", {}, {}).counts(traits)


def test_quota_applies_if_every_scope_matches() -> None:
    quota = ResourceQuota("ns", "q", {}, {}, (Scope("NotTerminating"), Scope("PriorityClass")))
    assert quota.counts(PodTraits(priority_class="high"))
    assert not quota.counts(PodTraits(priority_class="high", terminating=True))
    assert not quota.counts(PodTraits())
