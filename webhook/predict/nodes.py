"""Facts about all nodes together: label keys, taints of nodes with devices, and the newest kubelet version."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from webhook.api.taints import Taint
from webhook.cluster.contents import of_names
from webhook.cluster.resources.nodes import NODES, NodeShape
from webhook.cluster.view import UNKNOWN, ClusterView, Unknown


class AllNodes(msgspec.Struct, frozen=True):
    """`labels` are the keys that any node has; `taints` are, by device, the taints of nodes that have it.

    `kubelet` is the newest kubelet version. The API server is at least as new:
    https://kubernetes.io/releases/version-skew-policy/#kubelet
    """

    labels: frozenset[str]
    taints: Mapping[str, tuple[Taint, ...]]
    kubelet: tuple[int, int]


def node_shapes(view: ClusterView) -> Collection[NodeShape]:
    """The distinct shapes of nodes; empty if nodes are unknown."""
    groups = view.groups(NODES)
    return () if groups is UNKNOWN else groups.keys()  # type: ignore[return-value]  # NODES groups by shape


def counted_shapes(view: ClusterView) -> list[tuple[NodeShape, int]]:
    """Each shape of nodes with the number of its nodes; empty if nodes are unknown."""
    groups = view.groups(NODES)
    return [] if groups is UNKNOWN else [(shape, len(nodes)) for shape, nodes in groups.items()]  # type: ignore[misc]


def all_nodes(view: ClusterView) -> AllNodes | Unknown:
    """UNKNOWN also if the cluster has no nodes: a later node may have any label."""
    groups = view.groups(NODES)
    return of_names(groups, _together) if groups is not UNKNOWN and groups else UNKNOWN


def _together(shapes: Iterable[NodeShape]) -> AllNodes:
    labels: set[str] = set()
    taints: dict[str, set[Taint]] = {}
    kubelet = (0, 0)
    for shape in shapes:
        labels.update(shape.labels, shape.varying)
        kubelet = max(kubelet, shape.kubelet)
        if shape.taints:
            for name in (name for name, amount in shape.allocatable.items() if "/" in name and amount > 0):
                taints.setdefault(name, set()).update(shape.taints)
    in_order = {name: tuple(sorted(set_, key=str)) for name, set_ in taints.items()}
    return AllNodes(frozenset(labels), in_order, kubelet)
