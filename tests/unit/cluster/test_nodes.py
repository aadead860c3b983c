"""The records of nodes, and their groups. A shape has the properties that the nodes of a group share."""

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
    node = NODES.project(msgspec.json.encode(document))
    assert node is not None
    return node


def test_similar_nodes_share_a_shape() -> None:
    nodes = [{"apiVersion": "v1", "kind": "Node", **first} for first in gpu_nodes(100, racks=4)]
    groups = Snapshot(nodes).groups(NODES)
    assert groups is not UNKNOWN
    assert sorted(map(len, groups.values())) == [25] * 4
    (shape, *_) = groups
    assert shape is record(nodes[0]).shape


def test_small_difference_in_memory_does_not_change_the_shape() -> None:
    first, second = record(node(memory="1055794380Ki")), record(node("m", memory="1055794384Ki"))
    assert first.shape is second.shape
    assert first.shape is not record(node(memory="527953052Ki")).shape


def test_labels_with_different_values_on_each_node_are_left_out() -> None:
    labels = {"kubernetes.io/hostname": "n.local", "zone": "a", "topology.topolvm.io/node": "n", "second": "n.local"}
    shape = record(node(labels=labels)).shape
    assert shape.labels == {"zone": "a"}
    assert shape.varying == labels.keys() - {"zone"}


def test_temporary_and_soft_taints_are_left_out() -> None:
    keys = ("node.kubernetes.io/unreachable", "ToBeDeletedByClusterAutoscaler", "team")
    taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
    taints += [{"key": "team", "value": "a", "effect": "NoExecute"}, {"key": "x", "effect": "PreferNoSchedule"}]
    expected = (Taint("team", "", "NoSchedule"), Taint("team", "a", "NoExecute"))
    assert record(node(taints=taints)).shape.taints == tuple(sorted(expected, key=str))


def test_node_with_only_a_name_is_read() -> None:
    shape = record({"metadata": {"name": "n"}}).shape
    assert (shape.labels, shape.varying, shape.taints, shape.allocatable) == ({}, frozenset(), (), {})


def test_invalid_amount_makes_the_node_unreadable() -> None:
    with pytest.raises(quantity.QuantityError):
        record(node(cpu="many"))


def test_trimmed_node_has_only_the_fields_of_the_record() -> None:
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
def test_fitting_amount_still_fits_after_rounding(first: Quantity, second: Quantity) -> None:
    small, large = sorted((first, second))
    assert coarse("memory", small) <= coarse("memory", large)
    assert coarse("memory", large) <= quantity.whole(large) * quantity.NANO
    assert coarse("memory", large) >= large * 127 // 128
    assert (coarse("memory", large) > 0) == (large > 0)
    assert coarse("cpu", large) == large


@pytest.mark.parametrize(
    ("info", "kubelet", "cri_o"),
    [({"kubeletVersion": "v1.35.4"}, (1, 35), False), ({"containerRuntimeVersion": "cri-o://1.33.1"}, (0, 0), True)],
)
def test_nodes_with_different_kubelets_or_runtimes_have_different_shapes(
    info: Any, kubelet: tuple[int, int], cri_o: bool
) -> None:
    first, second = node(), node("m")
    first["status"]["nodeInfo"] = info
    assert (record(first).shape.kubelet, record(first).shape.cri_o) == (kubelet, cri_o)
    assert (record(second).shape.kubelet, record(second).shape.cri_o) == ((0, 0), False)
    assert record(first).shape is not record(second).shape
