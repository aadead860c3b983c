from typing import Any

import msgspec
import pytest

from webhook.api.accelerators import (
    DEFAULT_ACCELERATORS,
    accelerators,
    is_accelerator,
    pod_total,
)
from webhook.api.pod import Container, PodTemplate

GPU = "nvidia.com/gpu"


def container(**fields: Any) -> Container:
    return msgspec.convert(fields, Container)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("amd.com/gpu", True),
        ("gpu.intel.com/xe", True),
        ("habana.ai/gaudi", True),
        ("nvidia.com/gpu.product", False),
        ("gpu.intel.com/i915_monitoring", True),
        ("gpu.intel.com/xe_monitoring", True),
        ("gpu.intel.com/memory.max", False),
        ("rdma/hca", False),
        ("nvidia.com/mig-" + "x" * 400, False),
    ],
)
def test_default_patterns_match_accelerators(name: str, expected: bool) -> None:
    assert is_accelerator(name, DEFAULT_ACCELERATORS) is expected


def test_star_in_a_pattern_matches_any_text() -> None:
    assert is_accelerator("example.com/gpu-a100-80", ("example.com/gpu-*-80",))
    assert not is_accelerator("example.com/gpu-a100-40", ("example.com/gpu-*-80",))
    assert not is_accelerator("nvidia.com/gpu", ())


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        (None, 0),
        ({"limits": {"cpu": 4}}, 0),
        ({"limits": {GPU: 2, "amd.com/gpu": 1}}, 3),
        ({"requests": {GPU: "2"}}, 2),
        ({"requests": {GPU: 1}, "limits": {GPU: 2}}, 2),
        ({"limits": {GPU: "two"}}, 0),
        ({"limits": {GPU: None}}, 0),
        ({"limits": {GPU: -2, "amd.com/gpu": 1}}, 1),
        ({"limits": {GPU: "500m"}}, 1),
    ],
)
def test_accelerators_of_a_container_are_counted(resources: Any, count: int) -> None:
    assert accelerators(container(resources=resources), DEFAULT_ACCELERATORS) == count


def uses(count: int, **fields: Any) -> dict[str, Any]:
    return {"resources": {"limits": {GPU: count}}, **fields}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("containers", "init_containers", "total"),
    [
        ([], [], 0),
        ([uses(1), uses(2)], [], 3),
        ([uses(1)], [uses(4), uses(2)], 4),
        ([uses(1)], [uses(2, **SIDECAR)], 3),
        ([uses(1)], [uses(2, **SIDECAR), uses(4)], 6),
        ([uses(1)], [uses(4), uses(2, **SIDECAR)], 4),
        ([uses(1)], [uses(4, restartPolicy="OnFailure")], 4),
    ],
)
def test_total_of_a_pod_is_the_largest_number_in_use_at_one_time(
    containers: list[Any], init_containers: list[Any], total: int
) -> None:
    template = msgspec.convert({"spec": {"containers": containers, "initContainers": init_containers}}, PodTemplate)
    assert pod_total(template.with_devices, DEFAULT_ACCELERATORS) == total


def test_containers_with_accelerators_are_found_in_order() -> None:
    template = msgspec.convert(
        {
            "spec": {
                "containers": [
                    {"name": "plain", "resources": {"limits": {"cpu": 1}, "requests": {"memory": "1Gi"}}},
                    {"name": "nothing"},
                    {"name": "by-request", "resources": {"requests": {"cpu": 1, "rdma/hca": 1}}},
                    {"name": "by-limit", "resources": {"limits": {"nvidia.com/gpu": 1}}},
                ],
                "initContainers": [{"name": "first", "resources": {"limits": {"amd.com/gpu": 1}}}],
            }
        },
        PodTemplate,
    )
    containers = template.with_devices
    assert [(field, index, container.name) for field, index, container in containers] == [
        ("containers", 2, "by-request"),
        ("containers", 3, "by-limit"),
        ("initContainers", 0, "first"),
    ]
    assert PodTemplate().with_devices == []
