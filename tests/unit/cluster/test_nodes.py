"""The records of nodes, and their groups."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controlplane.nodes import gpu_nodes
from tests.support.strategies import PROPERTY
from webhook.api import quantity
from webhook.api.quantity import Quantity
from webhook.api.taints import Taint
from webhook.cluster.resources.nodes import NODES, Node, coarse
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import UNKNOWN


def node(name: str = "n", *, labels: dict[str, str] | None = None, taints: Any = None, **allocatable: Any) -> Any:
    spec = {"taints": taints} if taints else {"unschedulable": True}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "images": [{"names": ["a"]}]},
    }


def record(document: Any) -> Node:
    found = NODES.project(msgspec.json.encode(document))
    assert found is not None
    return found


def test_nodes_of_one_kind_share_a_shape() -> None:
    nodes = [{"apiVersion": "v1", "kind": "Node", **one} for one in gpu_nodes(100, racks=4)]
    groups = Snapshot(nodes).groups(NODES)
    assert groups is not UNKNOWN
    assert sorted(map(len, groups.values())) == [25] * 4
    (shape, *_) = groups
    assert shape is record(nodes[0]).shape


def test_some_pages_of_memory_make_no_other_shape() -> None:
    one, other = record(node(memory="1055794380Ki")), record(node("m", memory="1055794384Ki"))
    assert one.shape is other.shape
    assert one.shape is not record(node(memory="527953052Ki")).shape


def test_labels_of_its_own() -> None:
    labels = {"kubernetes.io/hostname": "n.local", "zone": "a", "topology.topolvm.io/node": "n", "other": "n.local"}
    shape = record(node(labels=labels)).shape
    assert shape.labels == {"zone": "a"}
    assert shape.varying == labels.keys() - {"zone"}


def test_taints_that_pass_or_do_not_repel_are_left_out() -> None:
    keys = ("node.kubernetes.io/unreachable", "ToBeDeletedByClusterAutoscaler", "team")
    taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
    taints += [{"key": "team", "value": "a", "effect": "NoExecute"}, {"key": "x", "effect": "PreferNoSchedule"}]
    expected = (Taint("team", "", "NoSchedule"), Taint("team", "a", "NoExecute"))
    assert record(node(taints=taints)).shape.taints == tuple(sorted(expected, key=str))


def test_a_node_that_says_nothing() -> None:
    shape = record({"metadata": {"name": "n"}}).shape
    assert (shape.labels, shape.varying, shape.taints, shape.allocatable) == ({}, frozenset(), (), {})


def test_an_amount_that_cannot_be_read_makes_the_node_unreadable() -> None:
    with pytest.raises(quantity.QuantityError):
        record(node(cpu="many"))


def test_trimmed() -> None:
    document = node(labels={"a": "b"}, taints=[{"key": "t", "effect": "NoSchedule", "timeAdded": "now"}], cpu="1")
    assert NODES.trim(document) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "1"}},
    }


AMOUNTS = st.integers(0, 10**25).map(Quantity)


@PROPERTY
@given(AMOUNTS, AMOUNTS)
def test_what_fits_exactly_fits_when_both_are_cut(one: Quantity, other: Quantity) -> None:
    small, large = sorted((one, other))
    assert coarse("memory", small) <= coarse("memory", large)
    assert coarse("memory", large) <= quantity.whole(large) * quantity.NANO
    assert coarse("memory", large) >= large * 127 // 128
    assert (coarse("memory", large) > 0) == (large > 0)
    assert coarse("cpu", large) == large


def test_cri_o_distinguishes_nodes() -> None:
    one, other = node("one"), node("two")
    one["status"]["nodeInfo"] = {"containerRuntimeVersion": "cri-o://1.33.1"}
    assert (record(one).shape.cri_o, record(other).shape.cri_o) == (True, False)


def test_the_version_of_the_kubelet_distinguishes_nodes() -> None:
    one, other = node(), node("m")
    one["status"]["nodeInfo"] = {"kubeletVersion": "v1.35.4", "osImage": "x"}
    assert record(one).shape.kubelet == (1, 35)
    assert record(other).shape.kubelet == (0, 0)
    assert record(one).shape is not record(other).shape
