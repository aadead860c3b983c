"""The records of LimitRanges and RuntimeClasses."""

from typing import Any

import msgspec
import pytest

from tests.support.limit_ranges import limit_range, shown
from tests.support.logs import Log
from webhook.api import quantity
from webhook.api.bounds import Bounds
from webhook.client.live_view import kinds
from webhook.client.store import Store
from webhook.client.wire import Metadata
from webhook.cluster.limits import MAX_LIMIT_RANGE_ENTRIES
from webhook.cluster.resources.limit_ranges import CONTAINER, LIMIT_RANGES, POD, LimitRange, bounds, defaults
from webhook.cluster.resources.runtime_classes import RUNTIME_CLASSES, RuntimeClass
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.cluster.view import UNKNOWN

Json = dict[str, Any]


def limit_ranges_of(*objects: Json) -> list[LimitRange]:
    result = Snapshot(objects).within(LIMIT_RANGES, "team-a")
    assert result is not UNKNOWN
    return [*result.values()]


@pytest.mark.parametrize(
    ("limit", "requests", "limits"),
    [
        ({}, {}, {}),
        ({"max": {"cpu": 4}}, {"cpu": "4"}, {"cpu": "4"}),
        ({"min": {"cpu": 1}}, {"cpu": "1"}, {}),
        ({"min": {"cpu": 1}, "max": {"cpu": 4}}, {"cpu": "4"}, {"cpu": "4"}),
        ({"default": {"cpu": 2}, "max": {"cpu": 4}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"defaultRequest": {"cpu": 1}, "max": {"cpu": 4}}, {"cpu": "1"}, {"cpu": "4"}),
        ({"type": "Pod", "max": {"cpu": 4}}, {}, {}),
    ],
)
def test_defaults_are_filled_in(limit: Json, requests: dict[str, str], limits: dict[str, str]) -> None:
    """The API server fills in the defaults of stored objects. The service does the same for objects from files."""
    result = defaults(limit_ranges_of(limit_range("a", {"type": "Container", **limit})))
    assert (shown(result.requests), shown(result.limits)) == (requests, limits)
    assert not result.disputed_requests | result.disputed_limits


def test_different_defaults_of_several_ranges_are_disputed() -> None:
    """The smallest default is used, and the resource is marked as disputed."""
    result = defaults(
        limit_ranges_of(
            limit_range("a", {"type": "Container", "default": {"cpu": 2, "memory": "1Gi"}}),
            limit_range("b", {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"memory": "1024Mi"}}),
            limit_range("c", {"type": "Container", "defaultRequest": {"cpu": 2}}),
        )
    )
    assert shown(result.limits) == {"cpu": "1", "memory": "1Gi"}
    assert shown(result.requests) == {"cpu": "1", "memory": "1Gi"}
    assert (result.disputed_requests, result.disputed_limits) == ({"cpu"}, {"cpu"})


def test_bounds_of_several_ranges_are_combined() -> None:
    one, four = quantity.parse(1), quantity.parse(4)
    ranges = limit_ranges_of(
        limit_range("a", {"type": "Container", "max": {"cpu": 4}}, {"type": "Pod", "min": {"cpu": 1}}),
        limit_range("b", {"type": "Container", "min": {"cpu": 1}, "max": {"cpu": 8}}),
    )
    assert bounds(ranges, CONTAINER) == {"cpu": (Bounds(one, four), ("a", "b"))}
    assert bounds(ranges, POD) == {"cpu": (Bounds(one), ("a",))}
    assert bounds(ranges[:1], "Other") == {}


def test_empty_limit_range_is_read() -> None:
    assert limit_ranges_of({**limit_range("a"), "spec": {}}) == [LimitRange("team-a", "a", {}, {}, {})]


def test_invalid_limit_range_is_an_error() -> None:
    with pytest.raises(SnapshotError, match="many"):
        limit_ranges_of(limit_range("a", {"type": "Pod", "max": {"cpu": "many"}}))


@pytest.mark.parametrize(
    ("overhead", "expected"),
    [
        ({}, None),
        ({"overhead": {}}, {}),
        ({"overhead": {"podFixed": {"cpu": "100100u"}}}, {"cpu": 100_100_000}),  # the exact amount, not rounded
    ],
)
def test_overhead_of_a_runtime_class(overhead: Json, expected: Json | None) -> None:
    manifest = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, **overhead}
    assert Snapshot([manifest]).get(RUNTIME_CLASSES, "kata") == RuntimeClass("kata", expected)


def test_limit_ranges_beyond_the_maximum_of_a_namespace_are_unreadable() -> None:
    """The number of entries is limited, because each entry is compared with each container of a job."""
    (kind,) = kinds(LIMIT_RANGES, {})
    store = Store(kind, log=Log())

    def put(name: str, namespace: str, resources: int) -> None:
        item = {"type": "Container", "max": {f"x.example.com/r{number}": 1 for number in range(resources)}}
        manifest = limit_range(name, item, namespace=namespace)
        store.put(Metadata(name=name, namespace=namespace), msgspec.Raw(msgspec.json.encode(manifest)))

    # Each resource counts as two entries: a maximum, and the default that follows from the maximum.
    put("a", "team-a", MAX_LIMIT_RANGE_ENTRIES // 2 - 1)
    put("b", "team-a", 1)
    put("c", "team-b", 1)
    assert not store.unreadable
    put("d", "team-a", 1)
    put("e", "team-c", MAX_LIMIT_RANGE_ENTRIES // 2 + 1)
    assert store.unreadable == {("team-a", "d"), ("team-c", "e")}
