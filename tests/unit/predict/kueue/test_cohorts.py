"""The reach of a ClusterQueue is the amount of a resource that the queue could use if no other queue used any.

The cases are those of Kueue's own tests (kueue `pkg/cache/scheduler/resource_test.go`, `TestAvailable`).
"""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kueue_objects import Json, Limits, cluster_queue, cohort
from tests.support.strategies import PROPERTY
from webhook.api.kueue import UNLIMITED, FlavorResource
from webhook.cluster.contents import Contents
from webhook.cluster.resources.cluster_queues import CLUSTER_QUEUES, ClusterQueue
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import ClusterView
from webhook.predict.kueue.cohorts import within_reach

RED = FlavorResource("red", "cpu")


def queue(name: str, cpu: Limits, cohort: str | None = None) -> Json:
    return cluster_queue(name, {"red": {"cpu": cpu}}, cohort=cohort)


def group(name: str, cpu: Limits | None = None, parent: str | None = None) -> Json:
    return cohort(name, *([] if cpu is None else [{"red": {"cpu": cpu}}]), parent=parent)


def reach(name: str, *objects: Json) -> int:
    view = Snapshot(objects)
    record = view.get(CLUSTER_QUEUES, name)
    assert isinstance(record, ClusterQueue)
    return within_reach(view, record, RED)


ROOT, LEFT, RIGHT = group("root"), group("left", 10, "root"), group("right", 10, "root")
OTHER = group("unrelated", 99)  # in a snapshot without a Cohort, all cohorts are unknown

CASES: dict[str, tuple[list[Json], Mapping[str, int]]] = {
    "alone": ([queue("a", 0), queue("b", 5)], {"a": 0, "b": 5_000}),
    "a lending limit": (
        [queue("a", 10, "c"), queue("b", (10, None, 9), "c"), group("c", 10)],
        {"a": 29_000, "b": 30_000},
    ),
    "quota of the cohort": ([queue("a", 10, "c"), group("c", 10)], {"a": 20_000}),
    "neither borrows nor lends": (
        [queue("a", 10, "c"), queue("b", (10, 0, 0), "c"), group("c", 10)],
        {"a": 20_000, "b": 10_000},
    ),
    "a borrowing limit and a lending limit": (
        [queue("a", 10, "c"), queue("b", (10, 2, None), "c"), queue("d", (10, None, 5), "c"), group("c", 10)],
        {"a": 35_000, "b": 12_000, "d": 40_000},
    ),
    "a tree": (
        [queue("a", 10, "left"), queue("b", (10, None, 0), "right"), ROOT, LEFT, RIGHT],
        {"a": 30_000, "b": 40_000},
    ),
    "a tree with borrowing limits": (
        [
            *(queue("a", 10, "left"), queue("b", (10, 5, None), "left"), queue("d", 10, "right")),
            *(group("left", (10, 5, None), "root"), RIGHT),
        ],
        {"a": 35_000, "b": 15_000, "d": 50_000},
    ),
    "a tree with lending limits": (
        [
            *(queue("a", (10, None, 5), "left"), queue("b", 10, "left"), queue("d", 0, "right"), queue("e", 0, "root")),
            *(group("left", (0, None, 5), "root"), group("right", 0, "root")),
        ],
        {"a": 20_000, "b": 15_000, "d": 5_000, "e": 5_000},
    ),
    "a cohort without a Cohort object": ([queue("a", 1, "c"), queue("b", 2, "c"), OTHER], {"a": 3_000, "b": 3_000}),
    "a parent without a Cohort object": ([queue("a", 1, "c"), queue("b", 2, "p"), group("c", 4, "p")], {"a": 7_000}),
    "beyond 64 bits": ([queue("a", "9E", "c"), queue("b", "9E", "c"), OTHER], {"a": UNLIMITED}),
}


@pytest.mark.parametrize(("objects", "expected"), CASES.values(), ids=CASES)
def test_reach_is_the_capacity_in_kueues_tests(objects: list[Json], expected: Mapping[str, int]) -> None:
    assert {name: reach(name, *objects) for name in expected} == expected


@pytest.mark.parametrize("objects", [[group("c", 1, "d"), group("d", 1, "c")], []], ids=["a cycle", "cohorts unknown"])
def test_reach_is_unlimited_if_cohorts_are_unknown_or_cyclic(objects: list[Json]) -> None:
    assert reach("a", queue("a", 1, "c"), *objects) == UNLIMITED


amounts = st.integers(0, 20)


@st.composite
def trees(draw: st.DrawFn) -> list[Json]:
    limits = st.one_of(amounts, st.tuples(amounts, st.none() | amounts, st.none() | amounts))
    names = [f"c{index}" for index in range(draw(st.integers(1, 5)))]
    cohorts = [
        group(name, draw(limits), draw(st.sampled_from([None, *names[:index]]))) for index, name in enumerate(names)
    ]
    queues = [
        queue(f"q{index}", draw(limits), draw(st.sampled_from(names))) for index in range(draw(st.integers(1, 5)))
    ]
    return [*cohorts, *queues]


@PROPERTY
@given(trees())
def test_reach_is_at_least_the_nominal_quota(objects: list[Json]) -> None:
    """The module `feasibility` reads the cohort only for requests above the nominal quota."""
    view = Snapshot(objects)
    cluster_queues = view.all(CLUSTER_QUEUES)
    assert isinstance(cluster_queues, Mapping)
    for record in cluster_queues.values():
        assert record.quotas[RED].nominal <= within_reach(view, record, RED)


class _Queues:
    """A view of cohorts, and of ClusterQueues that can be added and removed."""

    def __init__(self, *cohorts: Json) -> None:
        self.contents: Contents[str, ClusterQueue] = Contents(CLUSTER_QUEUES.group)
        self._cohorts = Snapshot(cohorts)

    def put(self, manifest: Json) -> None:
        record = Snapshot([manifest]).get(CLUSTER_QUEUES, manifest["metadata"]["name"])
        assert isinstance(record, ClusterQueue)
        self.contents.put(record.name, record)

    def get(self, resource: Any, key: Any) -> Any:
        return self._cohorts.get(resource, key)

    def groups(self, resource: Any) -> Any:
        return self.contents.groups if resource is CLUSTER_QUEUES else self._cohorts.groups(resource)

    def reach(self, name: str) -> int:
        return within_reach(cast("ClusterView", self), self.contents.records[name], RED)


@PROPERTY
@given(trees(), trees())
def test_reach_after_changes_equals_reach_of_the_current_queues(before: list[Json], after: list[Json]) -> None:
    cohorts = [manifest for manifest in (*before, *after) if manifest["kind"] == "Cohort"]
    earlier, later = (
        {item["metadata"]["name"]: item for item in tree if item["kind"] == "ClusterQueue"} for tree in (before, after)
    )
    live = _Queues(*cohorts)
    for name, manifest in earlier.items():
        live.put(manifest)
        live.reach(name)
    for manifest in later.values():
        live.put(manifest)
    for removed in earlier.keys() - later.keys():
        live.contents.remove(removed)
    for name in later:
        assert live.reach(name) == reach(name, *cohorts, *later.values())


def test_quota_that_a_cohort_lends_is_cached() -> None:
    live = _Queues(OTHER)
    for index in range(3):
        live.put(queue(f"q{index}", 5, "c"))
    assert live.reach("q0") == 15_000
    dict.clear(live.contents.groups["c"])  # this call notifies no listener
    assert live.reach("q0") == 15_000
