"""What is told of requests and limits."""

from typing import Any

import pytest

from tests.support.pod_template import BOX, told


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {f"{BOX}.resources": {"limits": {"gpu": 2}}},
            [
                (
                    'spec.containers[0].resources.limits[gpu]: there is no resource "gpu". Write nvidia.com/gpu, '
                    "or the name that your GPUs have."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"CPU": 2}}},
            ['spec.containers[0].resources.limits[CPU]: there is no resource "CPU". Write cpu.'],
        ),
        (
            {f"{BOX}.resources": {"limits": {"foo": 2}}},
            [
                (
                    'spec.containers[0].resources.limits[foo]: there is no resource "foo". Use cpu, memory, '
                    "ephemeral-storage, hugepages-2Mi, or a name with its domain, such as nvidia.com/gpu."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"a b/c": 2}}},
            [
                (
                    'spec.containers[0].resources.limits[a b/c]: "a b/c" has a prefix (before the "/") that '
                    'contains " "; allowed are lower case letters, digits, "-" and ".". Use cpu, memory, '
                    "ephemeral-storage, hugepages-2Mi, or a name with its domain, such as nvidia.com/gpu."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"requests.example.com/c": 2}}},
            [
                (
                    'spec.containers[0].resources.limits[requests.example.com/c]: "requests.example.com/c" is '
                    "not the name of an extended resource. Use cpu, memory, ephemeral-storage, hugepages-2Mi, or "
                    "a name with its domain, such as nvidia.com/gpu."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"a" * 400: 2}}},
            [
                (
                    "spec.containers[0].resources.limits[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...]: "
                    "is too long for the name of a resource: 400 characters. Use cpu, memory, ephemeral-storage, "
                    "hugepages-2Mi, or a name with its domain, such as nvidia.com/gpu."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"cpu": 2}, "requests": {"cpu": 4}}},
            [
                (
                    "spec.containers[0].resources.requests[cpu]: 4 is above the limit of 2. Set it to 2 or less, "
                    "or raise the limit."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"rdma/hca": 2}, "requests": {"rdma/hca": 1}}},
            [
                (
                    "spec.containers[0].resources.requests[rdma/hca]: 1 differs from the limit of 2. Set it to "
                    "2, or remove it: the limit counts."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"requests": {"rdma/hca": 1}}},
            [
                (
                    "spec.containers[0].resources.limits[rdma/hca]: is missing, but the request is 1. Set it to "
                    "the same amount."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"rdma/hca": "500m"}}},
            ["spec.containers[0].resources.limits[rdma/hca]: 500m is not whole. Set it to 1."],
        ),
        (
            {f"{BOX}.resources": {"limits": {"memory": 64}}},
            [
                (
                    "(advice) spec.containers[0].resources.limits[memory]: means 64 bytes. Write the unit: "
                    '"64Mi" or "64Gi".'
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"memory": "400m"}}},
            [
                (
                    "(advice) spec.containers[0].resources.limits[memory]: 400m means thousandths of a byte. "
                    'Write "400Mi".'
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"memory": 65536}}},
            [
                (
                    "(advice) spec.containers[0].resources.limits[memory]: means 65536 bytes. Write the unit: "
                    'such as "64Gi".'
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"hugepages-2Mi": "5Mi", "memory": "1Gi"}}},
            [
                (
                    "spec.containers[0].resources.limits[hugepages-2Mi]: 5Mi is no multiple of the page size "
                    "2Mi. Set it to a multiple of 2Mi."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"hugepages-big": "5Mi", "memory": "1Gi"}}},
            [
                (
                    "spec.containers[0].resources.limits[hugepages-big]: does not name a page size. Name it, as "
                    "hugepages-2Mi."
                )
            ],
        ),
        (
            {f"{BOX}.resources": {"limits": {"hugepages-2Mi": "4Mi"}}},
            [
                (
                    "spec.containers[0].resources.limits[hugepages-2Mi]: needs cpu or memory beside it. Set "
                    "memory and cpu too."
                )
            ],
        ),
    ],
)
def test_faults(changes: dict[str, Any], expected: list[str]) -> None:
    assert told(changes) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {f"{BOX}.resources": {"limits": {"rdma/hca": 2}, "requests": {"cpu": "100m"}}},
        {f"{BOX}.resources": {"limits": {"cpu": None}}},
        {f"{BOX}.resources": {"limits": {"kubernetes.io/batch": "1m"}}},
        {f"{BOX}.resources": {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}}},
        {f"{BOX}.resources": {"limits": {"cpu": -1}, "requests": {"cpu": 1}}},
        {f"{BOX}.resources": {"limits": {"memory": True, "cpu": "x"}}},
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
