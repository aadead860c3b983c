"""Accelerators that pods request by claims, and by the extended resources of DeviceClasses."""

from typing import Any

import pytest

from tests.support.devices import claim_template, claims, device_class, exactly
from tests.support.jobs import changed
from tests.support.rule_checks import defaulted
from webhook.api.accelerators import DEFAULT_ACCELERATORS
from webhook.cluster.resource import Resource
from webhook.cluster.resources.device_classes import DEVICE_CLASSES
from webhook.cluster.resources.resource_claim_templates import RESOURCE_CLAIM_TEMPLATES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView, NothingKnown
from webhook.kit.context import Context
from webhook.predict.devices import Devices, backed, names, of_pod

Json = dict[str, Any]

MINE = (*DEFAULT_ACCELERATORS, "example.com/gpu")


def devices(
    changes: Json, *objects: Json, view: ClusterView | None = None, patterns: Any = DEFAULT_ACCELERATORS
) -> Devices:
    job = defaulted(changed(changes))
    assert job.worker is not None
    return of_pod(job.worker.template, patterns, Context(namespace="team-a", view=view or Snapshot(objects)))


def by_claim(*requests: Json, classes: tuple[Json, ...] = (), **more: Any) -> Devices:
    return devices(claims("t"), claim_template("t", *requests), *classes, **more)


@pytest.mark.parametrize(
    ("requests", "least", "most", "requested"),
    [
        ([exactly()], 1, 1, 1),
        ([exactly(allocationMode="All")], 1, None, 1),
        ([exactly(adminAccess=True, allocationMode="All")], 0, 0, 0),
        ([exactly("rdma.example.com", count=8)], 0, 0, 0),
        ([exactly("unknown.example.com", count=8)], 0, None, 0),
        ([exactly("unknown.example.com"), exactly(count=2)], 2, None, 2),
        ([{"name": "x", "firstAvailable": [{"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"},
                                           {"deviceClassName": "other"}]}], 0, None, 1),
        ([{"name": "x", "firstAvailable": [{"deviceClassName": "gpu.nvidia.com", "count": 8},
                                           {"deviceClassName": "gpu.amd.com", "allocationMode": "All"}]}], 1, None, 8),
        ([{"name": "x"}], 0, 0, 0),
        ([], 0, 0, 0),
    ],
)  # fmt: skip
def test_claim_template_has_a_minimum_a_maximum_and_a_requested_number_of_devices(
    requests: list[Json], least: int, most: int | None, requested: int
) -> None:
    classes = (device_class("rdma.example.com"), device_class("other"))
    assert by_claim(*requests, classes=classes) == Devices(least, most, requested, by_claim=(least, most) != (0, 0))


def test_each_reference_to_a_claim_counts_in_addition_to_extended_resources() -> None:
    changes = claims("t", "t")
    changes["Worker.template.spec.containers.0.resources"] = {"limits": {"nvidia.com/gpu": 2}}
    assert devices(changes, claim_template("t", exactly(count=4))) == Devices(10, 10, 10, by_claim=True)
    assert devices({}, claim_template("t", exactly(count=4))) == Devices(2, 2, 2)


UNKNOWN_NUMBER = Devices(0, None, 0, by_claim=True)


@pytest.mark.parametrize(
    ("changes", "view"),
    [
        (claims("t"), NothingKnown()),
        (claims("other"), Snapshot([claim_template("t", exactly())])),
    ],
)  # fmt: skip
def test_number_is_unknown_for_unreadable_or_shared_claims(changes: Json, view: ClusterView) -> None:
    assert devices(changes, view=view) == UNKNOWN_NUMBER


def test_device_class_matches_by_its_own_name_or_its_extended_resource() -> None:
    request = exactly("our-gpus", count=4)
    assert by_claim(request).least == 0
    assert by_claim(request, patterns=("deviceclass.resource.kubernetes.io/our-*",)).least == 4
    assert by_claim(request, classes=(device_class("our-gpus", "example.com/gpu"),), patterns=MINE).least == 4
    assert by_claim(request, classes=(device_class("our-gpus", "example.com/nic"),), patterns=MINE).least == 0


def test_extended_resource_is_an_accelerator_if_its_device_class_is_one() -> None:
    fast = {"Worker.template.spec.containers.0.resources": {"limits": {"example.com/fast": 3}}}
    assert devices(fast).least == 0
    assert devices(fast, device_class("gpu.nvidia.com", "example.com/fast")).least == 3
    assert devices(fast, device_class("nic.example.com", "example.com/fast")).least == 0
    limits = {"limits": {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 5}}
    assert devices({"Worker.template.spec.containers.0.resources": limits}) == Devices(5, 5, 5)


def test_asterisk_in_a_resource_name_is_escaped() -> None:
    ctx = Context(view=Snapshot([device_class("gpu.nvidia.com", "a.b/x*"), device_class("gpu.amd.com")]))
    assert names(("nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu.*"), ctx)[2:] == ("a.b/x[*]",)


def test_resource_is_backed_by_a_device_class() -> None:
    ctx = Context(view=Snapshot([device_class("gpu.nvidia.com", "example.com/gpu")]))
    assert backed("example.com/gpu", ctx)
    assert backed("deviceclass.resource.kubernetes.io/x", Context())
    assert not backed("nvidia.com/gpu", ctx)
    assert not backed("nvidia.com/gpu", Context())


@pytest.mark.parametrize(
    ("resource", "manifest"),
    [
        (DEVICE_CLASSES, device_class("a", "example.com/gpu")),
        (RESOURCE_CLAIM_TEMPLATES, claim_template("t", exactly(count=2, adminAccess=False))),
    ],
)
def test_trimmed_object_gives_the_same_record(resource: Resource[Any, Any], manifest: Json) -> None:
    whole = Snapshot([manifest]).all(resource)
    assert isinstance(whole, dict)
    assert Snapshot([resource.trim(manifest)]).all(resource) == whole


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_every_api_version_is_read(version: str) -> None:
    template = claim_template("t", exactly(count=4), version=f"resource.k8s.io/{version}")
    assert devices(claims("t"), template).least == 4


@pytest.mark.parametrize("spec", [None, {}, {"spec": None}, {"spec": {"devices": {"requests": None}}}])
def test_empty_claim_template_has_no_devices(spec: Any) -> None:
    assert devices(claims("t"), {**claim_template("t"), "spec": spec}) == Devices()
