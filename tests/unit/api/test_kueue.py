import time

import msgspec
import pytest

from webhook.api import kueue, quantity
from webhook.api.kueue import UNLIMITED, FlavorResource, Group, QueueStatus, Quota, ResourceGroup


@pytest.mark.parametrize(
    ("resource", "written", "expected"),
    [
        ("cpu", "1500m", 1500),
        ("cpu", "100u", 1),
        ("cpu", "10P", UNLIMITED),
        ("memory", "1Gi", 2**30),
        ("memory", "8E", 8 * 10**18),
        ("memory", "10E", UNLIMITED),
    ],
)
def test_amount_in_kueues_units(resource: str, written: str, expected: int) -> None:
    assert kueue.amount(resource, quantity.parse(written)) == expected


@pytest.mark.parametrize(
    ("resource", "value", "expected"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 64000, "64"),
        ("memory", 2**36, "64Gi"),
        ("pods", UNLIMITED, "unlimited"),
    ],
)
def test_amount_as_text(resource: str, value: int, expected: str) -> None:
    assert kueue.text(resource, value) == expected


def test_sums_saturate() -> None:
    assert kueue.plus(UNLIMITED, 1) == kueue.plus(2**62, 2**62) == UNLIMITED
    assert kueue.plus(2, 3) == 5
    assert kueue.minus(UNLIMITED, 5) == UNLIMITED
    assert kueue.minus(UNLIMITED, UNLIMITED) == 0
    assert kueue.minus(5, 7) == -2


def test_groups_and_quotas_are_read_from_resource_groups() -> None:
    written = [
        {
            "coveredResources": ["cpu", "memory"],
            "flavors": [
                {
                    "name": "a",
                    "resources": [
                        {"name": "cpu", "nominalQuota": 2, "borrowingLimit": "1", "lendingLimit": 0},
                        {"name": "memory", "nominalQuota": "1k"},
                    ],
                },
                {"name": "b"},
            ],
        },
        {},
    ]
    groups = msgspec.convert(written, list[ResourceGroup])
    assert kueue.groups(groups) == (Group(frozenset({"cpu", "memory"}), ("a", "b")), Group(frozenset(), ()))
    assert kueue.quotas(groups) == {
        FlavorResource("a", "cpu"): Quota(2000, 1000, 0),
        FlavorResource("a", "memory"): Quota(1000, None, None),
    }
    assert kueue.groups(None) == ()
    assert kueue.quotas(None) == {}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ""),
        ({"conditions": [{"type": "Active", "status": "True", "reason": "Ready"}]}, ""),
        ({"conditions": [{"type": "Other", "status": "False", "reason": "X"}]}, ""),
        ({"conditions": [{"type": "Active", "status": "False", "reason": "Stopped"}]}, "Stopped"),
        ({"conditions": [{"type": "Active", "status": "False"}]}, "Unknown"),
    ],
)
def test_reason_of_an_inactive_queue(status: object, expected: str) -> None:
    assert kueue.inactive_reason(msgspec.convert(status, QueueStatus)) == expected
    assert kueue.inactive_reason(None) == ""


@pytest.mark.parametrize(("policy", "expected"), [(None, ""), ("None", ""), ("Hold", "Hold")])
def test_queue_is_not_stopped_if_its_stop_policy_is_absent_or_has_the_value_none(
    policy: str | None, expected: str
) -> None:
    assert kueue.stopped(policy) == expected


@pytest.mark.parametrize("key", ["q" * 50_000 + "/x", "kueue" * 10_000, "x-k8s.io/" * 5_000 + "/"])
def test_long_key_is_judged_in_linear_time(key: str) -> None:
    began = time.thread_time()
    assert kueue.queue_names([key]) == []
    assert time.thread_time() - began < 0.2
