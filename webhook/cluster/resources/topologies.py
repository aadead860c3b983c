"""Kueue's Topologies: the levels, such as block and rack, at which Kueue keeps pods together."""

import msgspec

from webhook.api import kueue
from webhook.cluster.resource import Wire, cluster_wide


class Topology(msgspec.Struct, frozen=True):
    """A topology."""

    name: str
    levels: tuple[str, ...]
    """The node label of each level, from the widest level to the narrowest."""


class _Level(msgspec.Struct, rename="camel", omit_defaults=True):
    node_label: str = ""


class _Spec(msgspec.Struct, omit_defaults=True):
    levels: list[_Level] | None = None


class _Topology(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _record(decoded: _Topology) -> Topology:
    return Topology(decoded.metadata.name, tuple(level.node_label for level in decoded.spec.levels or ()))


TOPOLOGIES = cluster_wide("topologies", "Topology", *kueue.API_VERSIONS, wire=_Topology, record=_record)
