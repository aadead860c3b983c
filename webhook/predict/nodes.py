"""Facts about all nodes together. They are computed again only when the node shapes change, not for each review.

A node shape has the properties that equal nodes share.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from webhook.api.pod_resources import Amounts
from webhook.api.quantity import Quantity
from webhook.api.taints import Taint
from webhook.cluster.contents import of_names
from webhook.cluster.resources.nodes import NODES, NodeShape
from webhook.cluster.view import UNKNOWN, ClusterView, Unknown

_KARPENTER: Final = "karpenter.sh/"


class AllNodes(msgspec.Struct, frozen=True):
    """Facts about the nodes of a cluster with at least one node."""

    labels: frozenset[str]
    """The label keys that at least one node has."""
    taints: Mapping[str, tuple[Taint, ...]]
    """By device: the taints of the nodes that have the device."""
    kubelet: tuple[int, int]
    """The newest kubelet version. The API server is at least as new:
    https://kubernetes.io/releases/version-skew-policy/#kubelet
    """
    most: Amounts
    """The largest amount of each resource on one node."""
    by_karpenter: bool
    """True if Karpenter created a node: it may then create more nodes."""
    on_cri_o: bool
    """True if all nodes run CRI-O."""


def node_shapes(view: ClusterView) -> Collection[NodeShape]:
    """Empty if nodes are unknown."""
    groups = view.groups(NODES)
    return () if groups is UNKNOWN else groups.keys()  # type: ignore[return-value]  # NODES groups by shape


def counted_shapes(view: ClusterView) -> list[tuple[NodeShape, int]]:
    """Each shape with the number of its nodes; empty if nodes are unknown."""
    groups = view.groups(NODES)
    return [] if groups is UNKNOWN else [(shape, len(nodes)) for shape, nodes in groups.items()]  # type: ignore[misc]


def all_nodes(view: ClusterView) -> AllNodes | Unknown:
    """UNKNOWN if nodes are unknown, or if there are none: a node that is added later may have any label."""
    groups = view.groups(NODES)
    return of_names(groups, _together) if groups is not UNKNOWN and groups else UNKNOWN


def _together(shapes: Iterable[NodeShape]) -> AllNodes:
    shapes = list(shapes)
    labels: set[str] = set()
    taints: dict[str, set[Taint]] = {}
    kubelet = (0, 0)
    most: dict[str, Quantity] = {}
    for shape in shapes:
        labels.update(shape.labels, shape.varying)
        kubelet = max(kubelet, shape.kubelet)
        for name, amount in shape.allocatable.items():
            most[name] = max(amount, most.get(name, amount))
        if shape.taints:
            for name in (name for name, amount in shape.allocatable.items() if "/" in name and amount > 0):
                taints.setdefault(name, set()).update(shape.taints)
    in_order = {name: tuple(sorted(set_, key=str)) for name, set_ in taints.items()}
    by_karpenter = any(key.startswith(_KARPENTER) for key in labels)
    on_cri_o = all(shape.cri_o for shape in shapes)
    return AllNodes(frozenset(labels), in_order, kubelet, most, by_karpenter, on_cri_o)
