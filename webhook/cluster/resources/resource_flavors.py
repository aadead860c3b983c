"""Kueue's ResourceFlavors: types of nodes."""

import msgspec

from webhook.api import kueue
from webhook.api.pod import Toleration
from webhook.api.taints import Taint
from webhook.cluster.resource import Wire, cluster_wide


class ResourceFlavor(msgspec.Struct, frozen=True):
    """A flavor."""

    name: str
    node_labels: dict[str, str]
    taints: tuple[Taint, ...]
    tolerations: tuple[Toleration, ...]
    topology: str
    """The Topology; empty without topology-aware scheduling."""


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    node_labels: dict[str, str] | None = None
    node_taints: list[Taint] | None = None
    tolerations: list[Toleration] | None = None
    topology_name: str | None = None


class _ResourceFlavor(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _record(decoded: _ResourceFlavor) -> ResourceFlavor:
    spec = decoded.spec
    return ResourceFlavor(
        decoded.metadata.name,
        spec.node_labels or {},
        tuple(spec.node_taints or ()),
        tuple(spec.tolerations or ()),
        spec.topology_name or "",
    )


RESOURCE_FLAVORS = cluster_wide(
    "resourceflavors", "ResourceFlavor", *kueue.API_VERSIONS, wire=_ResourceFlavor, record=_record
)
