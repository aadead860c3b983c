"""Nodes, grouped by shape: thousands of nodes have a few dozen shapes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from webhook.api import quantity
from webhook.api.pod_resources import Amounts
from webhook.api.quantity import Quantity
from webhook.api.taints import REPELLING, Taint
from webhook.cluster.resource import Metadata, Wire, cluster_wide

HOSTNAME: Final = "kubernetes.io/hostname"

# Labels whose values differ between nodes. A label whose value is the node's name is treated like these labels.
_OWN: Final = frozenset({HOSTNAME, "nvidia.com/gfd.timestamp", "alpha.eksctl.io/instance-id"})
# Prefixes of taints for a temporary state of a node: unreachable, cordoned, starting, about to be removed.
_TEMPORARY: Final = (
    "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node.cilium.io/", "karpenter.sh/",
    "startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler",
)  # fmt: skip
_CRI_O: Final = "cri-o://"
_COARSE: Final = frozenset({"memory", "ephemeral-storage"})
_BITS: Final = 8
_VERSION: Final = re.compile(r"v(\d{1,3})\.(\d{1,3})\.")


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class NodeShape:
    """The common properties of nodes."""

    labels: Mapping[str, str]
    varying: frozenset[str]
    """The keys of labels whose values differ between these nodes."""
    taints: tuple[Taint, ...]
    """The permanent taints."""
    allocatable: Amounts
    """The total for all pods on a node, in `coarse` amounts."""
    kubelet: tuple[int, int] = (0, 0)
    """The major and minor version of the kubelet; (0, 0) if the version is unknown."""
    cri_o: bool = False
    """Whether CRI-O runs the containers."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node. Cordoned and unready nodes are included, because these states are temporary."""

    name: str
    shape: NodeShape


class _Metadata(Metadata):
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct, omit_defaults=True):
    taints: list[Taint] | None = None


class _NodeInfo(msgspec.Struct, rename="camel", omit_defaults=True):
    kubelet_version: str = ""
    container_runtime_version: str = ""


class _Status(msgspec.Struct, rename="camel", omit_defaults=True):
    allocatable: dict[str, object] | None = None
    node_info: _NodeInfo | None = None


class _Node(Wire):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


def coarse(name: str, amount: Quantity) -> Quantity:
    """The amount of a resource, with bytes cut to 8 significant bits.

    Machines of the same type differ by some pages of memory. Before a comparison, the requests of a pod must be cut
    too. Otherwise a pod that exactly fills a node would not fit.
    """
    if name not in _COARSE:
        return amount
    whole = quantity.whole(amount)
    cut = max(whole.bit_length() - _BITS, 0)
    return Quantity((whole >> cut << cut) * quantity.NANO)


def uncut(name: str, amount: Quantity) -> Quantity:
    """An upper limit for all amounts that `coarse` cuts to `amount`."""
    return Quantity(amount + (amount >> (_BITS - 1))) if name in _COARSE else amount


def _record(node: _Node) -> Node:
    labels = node.metadata.labels or {}
    names = {node.metadata.name, labels.get(HOSTNAME)}
    varying = frozenset(key for key, value in labels.items() if key in _OWN or value in names)
    taints = {
        taint for taint in node.spec.taints or () if taint.effect in REPELLING and not taint.key.startswith(_TEMPORARY)
    }
    amounts = {name: coarse(name, quantity.parse(value)) for name, value in (node.status.allocatable or {}).items()}
    return Node(
        node.metadata.name,
        _shape(
            (
                frozenset((key, value) for key, value in labels.items() if key not in varying),
                varying,
                frozenset(taints),
                frozenset(amounts.items()),
                _version(node.status.node_info),
                node.status.node_info is not None
                and node.status.node_info.container_runtime_version.startswith(_CRI_O),
            )
        ),
    )


def _version(info: _NodeInfo | None) -> tuple[int, int]:
    version = _VERSION.match(info.kubelet_version) if info is not None else None
    return (int(version[1]), int(version[2])) if version else (0, 0)


_Key = tuple[
    frozenset[tuple[str, str]], frozenset[str], frozenset[Taint], frozenset[tuple[str, Quantity]], tuple[int, int], bool
]
# Nodes with equal keys share a shape. Weak references free a shape with its last node.
_SHAPES: WeakValueDictionary[_Key, NodeShape] = WeakValueDictionary()


def _shape(key: _Key) -> NodeShape:
    shape = _SHAPES.get(key)
    if shape is None:
        labels, varying, taints, allocatable, kubelet, cri_o = key
        taints_in_order = tuple(sorted(taints, key=str))
        shape = _SHAPES[key] = NodeShape(dict(labels), varying, taints_in_order, dict(allocatable), kubelet, cri_o)
    return shape


NODES = cluster_wide("nodes", "Node", "v1", wire=_Node, record=_record, group=lambda node: node.shape)
