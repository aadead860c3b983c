"""A fault that two rules find, such as a wrong pair of request and limit, is reported once."""

from typing import Any

import pytest

from tests.support.jobs import changed
from tests.support.limit_ranges import limit_range
from tests.support.namespaces import labelled
from tests.support.quota_objects import cluster
from tests.support.rule_checks import decide

RESOURCES = "Worker.template.spec.containers.0.resources"


def refused(resources: dict[str, Any], bounds: dict[str, Any], policy: str = "") -> list[tuple[str, str]]:
    bound = limit_range("l", {"type": "Container", "max": bounds, "default": bounds, "defaultRequest": bounds})
    decision = decide(changed({RESOURCES: resources}), policy, view=cluster(bound))
    return [(finding.rule, finding.violation.fix) for finding in decision.denied]


ABOVE = {"requests": {"cpu": "16"}, "limits": {"cpu": "8"}}
BOTH = ("limit-range", "Set limits[cpu] to 4 and requests[cpu] to 4.")
OWN = ("pod-template", "Set it to 8 or less, or raise the limit.")


@pytest.mark.parametrize(
    ("resources", "bounds", "policy", "expected"),
    [
        (ABOVE, {"cpu": "4"}, "", [BOTH]),
        (ABOVE, {"cpu": "32"}, "", [OWN]),
        (ABOVE, {"cpu": "4"}, "rules: {limit-range: {action: warn}}", [OWN]),
        ({"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}, {"cpu": "4"}, "", []),
    ],
)
def test_pair_of_request_and_limit_is_reported_once(
    resources: dict[str, Any], bounds: dict[str, Any], policy: str, expected: list[tuple[str, str]]
) -> None:
    assert refused(resources, bounds, policy) == expected


GPU, FPGA, RDMA = "nvidia.com/gpu", "example.com/fpga", "rdma/ib"


def limits_to(name: str, *fields: str) -> tuple[str, str]:
    return "limit-range", f"Set {' and '.join(f'{field}[{name}] to 1' for field in fields)}."


@pytest.mark.parametrize("name", [GPU, FPGA, RDMA])
@pytest.mark.parametrize(
    ("request_", "limit", "fields"),
    [
        (1, 2, ("limits",)),
        (2, 4, ("limits", "requests")),
        (2, 1, ("requests",)),
        ("1500m", "1500m", ("limits", "requests")),
    ],
)
def test_resource_that_is_out_of_bounds_and_cannot_be_overcommitted_is_reported_once(
    name: str, request_: int | str, limit: int | str, fields: tuple[str, ...]
) -> None:
    resources = {"requests": {"cpu": "1", name: request_}, "limits": {"cpu": "1", name: limit}}
    assert refused(resources, {name: "1"}) == [limits_to(name, *fields)]


@pytest.mark.parametrize("name", [GPU, FPGA])
def test_request_above_a_default_limit_is_reported_once(name: str) -> None:
    resources = {"requests": {"cpu": "1", name: 2}, "limits": {"cpu": "1"}}
    assert refused(resources, {name: "1"}) == [limits_to(name, "requests")]
    assert refused({"requests": {"cpu": "1", name: 1}, "limits": {"cpu": "1"}}, {name: "1"}) == []
    assert refused(resources, {"cpu": "1"}) == [("limit-range", f"Set limits[{name}] to 2.")]


def test_second_type_of_accelerator_is_also_reported() -> None:
    resources = {"limits": {"cpu": "1", GPU: 2, "amd.com/gpu": 1}}
    assert [rule for rule, _ in refused(resources, {GPU: "1"})] == ["gpus", "limit-range"]


def test_fault_in_the_pair_of_another_resource_is_also_reported() -> None:
    resources = {"requests": {"cpu": "16", "memory": "2Gi"}, "limits": {"cpu": "8", "memory": "1Gi"}}
    assert refused(resources, {"cpu": "4"}) == [BOTH, ("pod-template", "Set it to 1Gi or less, or raise the limit.")]


@pytest.mark.parametrize(
    ("level", "owner", "field", "value"),
    [
        ("restricted", "Worker.template.spec", "runAsUser", 0),
        ("baseline", "Worker.template.spec.containers.0", "procMount", "Unmasked"),
    ],
)
def test_field_forbidden_by_namespace_and_api_server_is_reported_once(
    level: str, owner: str, field: str, value: object
) -> None:
    job = changed({f"{owner}.securityContext": {"runAsNonRoot": True, field: value}})
    for enforced, rule in ((level, "pod-security"), ("privileged", "pod-template")):
        denied = decide(job, view=labelled(enforce=enforced)).denied
        assert [finding.rule for finding in denied if finding.violation.path.endswith(field)] == [rule]
