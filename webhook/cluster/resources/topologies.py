"""Kueue's Topologies: the levels at which topology-aware scheduling keeps pods together."""

import msgspec

from webhook.api import kueue
from webhook.cluster.resource import Wire, cluster_wide


class Topology(msgspec.Struct, frozen=True):
    """The node labels of the levels, from the widest to the narrowest."""

    name: str
    levels: tuple[str, ...]


class _Level(msgspec.Struct, rename="camel", omit_defaults=True):
    node_label: str = ""


class _Spec(msgspec.Struct, omit_defaults=True):
    levels: list[_Level] | None = None


class _Topology(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _record(decoded: _Topology) -> Topology:
    return Topology(decoded.metadata.name, tuple(level.node_label for level in decoded.spec.levels or ()))


TOPOLOGIES = cluster_wide("topologies", "Topology", *kueue.API_VERSIONS, wire=_Topology, record=_record)
