"""Facts about all nodes together: their labels, the taints of nodes with a device, the kubelet's version."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from webhook.api.taints import Taint
from webhook.cluster.contents import of_names
from webhook.cluster.resources.nodes import NODES, NodeShape
from webhook.cluster.view import UNKNOWN, ClusterView, Unknown


class AllNodes(msgspec.Struct, frozen=True):
    """`labels` are the keys that some node has; `taints` are by the device that the tainted nodes offer.

    `kubelet` is the newest version of a kubelet. The API server's is not older:
    https://kubernetes.io/releases/version-skew-policy/#kubelet
    """

    labels: frozenset[str]
    taints: Mapping[str, tuple[Taint, ...]]
    kubelet: tuple[int, int]


def node_shapes(view: ClusterView) -> Collection[NodeShape]:
    """The distinct shapes of nodes; none if they are unknown."""
    groups = view.groups(NODES)
    return () if groups is UNKNOWN else groups.keys()  # type: ignore[return-value]  # what NODES groups by


def counted_shapes(view: ClusterView) -> list[tuple[NodeShape, int]]:
    """Each shape of nodes with their number; none if they are unknown."""
    groups = view.groups(NODES)
    return [] if groups is UNKNOWN else [(shape, len(nodes)) for shape, nodes in groups.items()]  # type: ignore[misc]


def all_nodes(view: ClusterView) -> AllNodes | Unknown:
    """UNKNOWN also without any node: later ones may have any label."""
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
    in_order = {name: tuple(sorted(found, key=str)) for name, found in taints.items()}
    return AllNodes(frozenset(labels), in_order, kubelet)
