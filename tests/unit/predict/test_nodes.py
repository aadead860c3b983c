"""Facts about all nodes together."""

from typing import Any

import msgspec

from tests.support.nodes import node
from webhook.api import quantity
from webhook.api.taints import Taint
from webhook.client.store import Kind, Store, by_name
from webhook.client.wire import Metadata
from webhook.cluster.contents import Contents, of_names
from webhook.cluster.resources.nodes import NODES
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import UNKNOWN, NothingKnown
from webhook.predict.nodes import AllNodes, all_nodes

GPU = "nvidia.com/gpu"


def test_cluster_without_nodes_is_unknown() -> None:
    assert all_nodes(NothingKnown()) is UNKNOWN
    assert all_nodes(Snapshot([])) is UNKNOWN


def test_facts_of_all_nodes_are_combined() -> None:
    tainted = ["gpu:NoSchedule", "b:NoSchedule"]
    nodes = [
        node("a", {"zone": "x", "own": "a"}, tainted, kubelet="v1.33.1", cpu="1", **{GPU: "8"}),
        node("b", {"rack": "y"}, ["gpu:NoSchedule"], kubelet="v1.9.3+k3s1", **{GPU: "0", "amd.com/gpu": "4"}),
        node("c", {}, ["c:NoSchedule"], kubelet="kwok", cpu="1"),
    ]
    largest = {"cpu": "96", "memory": "1Ti", GPU: "8", "amd.com/gpu": "4"}
    assert all_nodes(Snapshot(nodes)) == AllNodes(
        labels=frozenset({"zone", "own", "rack"}),
        taints={
            GPU: (Taint("b", "", "NoSchedule"), Taint("gpu", "", "NoSchedule")),
            "amd.com/gpu": (Taint("gpu", "", "NoSchedule"),),
        },
        kubelet=(1, 33),
        most={name: quantity.parse(amount) for name, amount in largest.items()},
        by_karpenter=False,
        on_cri_o=False,
    )


def test_largest_amount_and_karpenter_are_found_on_any_node() -> None:
    nodes = all_nodes(Snapshot([node("a", cpu="2"), node("b", {"karpenter.sh/nodepool": "x"}, cpu="9")]))
    assert nodes is not UNKNOWN
    assert nodes.most["cpu"] == quantity.parse("9")
    assert nodes.by_karpenter


def test_invalid_kubelet_version_is_ignored() -> None:
    for version in ("", "v1", "1.31.0", "v1.31", "fake", "v1.9999.1"):
        nodes = all_nodes(Snapshot([node("a", kubelet=version)]))
        assert nodes is not UNKNOWN
        assert nodes.kubelet == (0, 0)


class TestOfNames:
    """`of_names` computes a result from the names of groups, and caches it until a group is added or removed."""

    def test_result_is_recomputed_when_a_group_is_added_or_removed(self) -> None:
        contents: Contents[str, str] = Contents(lambda record: record[0])
        calls: list[list[object]] = []

        def number_of_calls(names: Any) -> int:
            calls.append(sorted(names))
            return len(calls)

        results = []
        for key, record in (("k1", "a1"), ("k2", "a2"), ("k2", "b2"), ("k2", "b3"), ("k1", None)):
            if record is None:
                contents.remove(key)
            else:
                contents.put(key, record)
            results.append(of_names(contents.groups, number_of_calls))
        assert results == [1, 1, 2, 2, 3]
        assert calls == [["a"], ["a", "b"], ["b"]]

    def test_mapping_without_a_cache_gives_the_result(self) -> None:
        assert of_names({"a": {}, "b": {}}, sorted) == ["a", "b"]

    def test_result_for_a_store_is_computed_once(self) -> None:
        """The store returns the same group objects for every review."""
        kind = Kind("nodes", "/api/v1/nodes", by_name, NODES.project, group=NODES.group)
        store = Store(kind, log=None)
        store.put(Metadata(name="a"), msgspec.Raw(msgspec.json.encode(node("a", labels={"zone": "x"}))))
        calls: list[object] = []
        for _ in range(3):
            of_names(store.groups, calls.append)
        assert len(calls) == 1
