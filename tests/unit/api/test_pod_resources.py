"""Requests and limits of pods. tests/conformance/test_resource_quota.py compares them with the API server."""

from typing import Any

import msgspec
import pytest

from webhook.api import pod_resources, quantity
from webhook.api.pod import PodTemplate
from webhook.api.pod_resources import PodResources

Json = dict[str, Any]


def pod(**spec: Any) -> PodResources:
    return pod_resources.of_template(msgspec.convert({"spec": spec}, PodTemplate))


def container(requests: Json | None = None, limits: Json | None = None, **fields: Any) -> Json:
    return {"name": "c", "resources": {"requests": requests, "limits": limits}, **fields}


def sidecar(requests: Json) -> Json:
    return container(requests, restartPolicy="Always")


def shown(amounts: pod_resources.Amounts) -> dict[str, str]:
    return {name: quantity.format(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("spec", "requests", "limits"),
    [
        ({}, {}, {}),
        ({"containers": [{"name": "c"}]}, {}, {}),
        ({"containers": [container({"cpu": 1}), container({"cpu": "500m"})]}, {"cpu": "1500m"}, {}),
        # A limit without a request is also the request, for each resource separately.
        (
            {"containers": [container({"cpu": 1}, {"cpu": 2, "memory": "1Gi"})]},
            {"cpu": "1", "memory": "1Gi"},
            {"cpu": "2", "memory": "1Gi"},
        ),
        # Init containers run one after the other, before the containers.
        ({"containers": [container({"cpu": 1})], "initContainers": [container({"cpu": 3})] * 2}, {"cpu": "3"}, {}),
        # Sidecars keep running: alongside the containers, and alongside later init containers.
        ({"containers": [container({"cpu": 4})], "initContainers": [sidecar({"cpu": 1})]}, {"cpu": "5"}, {}),
        (
            {"containers": [container({"cpu": 1})], "initContainers": [sidecar({"cpu": 1}), container({"cpu": 3})]},
            {"cpu": "4"},
            {},
        ),
        (
            {"containers": [container({"cpu": 1})], "initContainers": [container({"cpu": 3}), sidecar({"cpu": 1})]},
            {"cpu": "3"},
            {},
        ),
        # Pod-level amounts replace the containers' amounts of those resources that Kubernetes allows at pod level.
        (
            {
                "containers": [container({"cpu": 1, "x/y": 1}, {"x/y": 1})],
                "resources": {"requests": {"cpu": 2, "x/y": 9}},
            },
            {"cpu": "2", "x/y": "1"},
            {"x/y": "1"},
        ),
        # A pod-level limit becomes the request only if no container requests the resource.
        (
            {"containers": [container({"cpu": 1})], "resources": {"limits": {"cpu": 4, "memory": "1Gi"}}},
            {"cpu": "1", "memory": "1Gi"},
            {"cpu": "4", "memory": "1Gi"},
        ),
        # Huge pages of containers become the pod-level limit, and therefore the pod-level request.
        (
            {"containers": [container(None, {"hugepages-2Mi": "2Mi"})] * 2, "resources": {"limits": {"cpu": 1}}},
            {"cpu": "1", "hugepages-2Mi": "4Mi"},
            {"cpu": "1", "hugepages-2Mi": "4Mi"},
        ),
        # Overhead is added to requests, and to limits that exist.
        (
            {"containers": [container({"cpu": 1}, {"memory": "1Gi"})], "overhead": {"cpu": "250m", "memory": "1Gi"}},
            {"cpu": "1250m", "memory": "2Gi"},
            {"memory": "2Gi"},
        ),
        # Amounts are rounded up to thousandths.
        ({"containers": [container({"cpu": "0.1m"})] * 2}, {"cpu": "2m"}, {}),
        # Invalid quantities are left out.
        ({"containers": [container({"cpu": "many", "memory": 1})]}, {"memory": "1"}, {}),
    ],
)
def test_requests_and_limits_of_a_pod(spec: Json, requests: dict[str, str], limits: dict[str, str]) -> None:
    resources = pod(**spec)
    assert shown(pod_resources.requests(resources)) == requests
    assert shown(pod_resources.limits(resources)) == limits


def test_missing_template_has_no_resources() -> None:
    assert pod_resources.of_template(PodTemplate()) == PodResources()


def test_defaults_do_not_change_amounts_that_a_container_sets() -> None:
    resources = pod(containers=[container({"cpu": 1})], initContainers=[container(None, {"cpu": 2})])
    filled_in = resources.with_defaults(requests={"cpu": quantity.parse("5")}, limits={"cpu": quantity.parse("6")})
    assert [(shown(each.requests), shown(each.limits)) for each in filled_in.containers] == [
        ({"cpu": "1"}, {"cpu": "6"}),
        ({"cpu": "2"}, {"cpu": "2"}),
    ]
    assert resources.with_defaults(requests={}, limits={}) is resources


def test_equal_pods_are_the_same_cache_key() -> None:
    made = [pod(containers=[container({"cpu": cpu}, {"memory": 1})], overhead={"cpu": 1}) for cpu in (1, "1000m", 2)]
    assert made[0] == made[1] != made[2]
    assert len({*made}) == 2
    assert hash(made[0]) == hash(made[1])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cpu", True),
        ("example.kubernetes.io/x", True),
        ("hugepages-2Mi", False),
        ("nvidia.com/gpu", False),
    ],
)
def test_resources_that_can_be_overcommitted(name: str, expected: bool) -> None:
    assert pod_resources.is_overcommitted(name) == expected


def test_invalid_amount_is_an_error() -> None:
    assert shown(pod_resources.parse_amounts({"cpu": "0.1m"})) == {"cpu": "1m"}
    assert pod_resources.parse_amounts(None) == {}
    with pytest.raises(quantity.QuantityError):
        pod_resources.parse_amounts({"cpu": "many"})
