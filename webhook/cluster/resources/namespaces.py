"""Namespaces and their labels."""

import msgspec

from webhook.cluster.resource import Metadata, Wire, cluster_wide


class Namespace(msgspec.Struct, frozen=True):
    """A namespace and its labels."""

    name: str
    labels: dict[str, str]


class _Metadata(Metadata):
    labels: dict[str, str] | None = None


class _Namespace(Wire):
    metadata: _Metadata


def _record(namespace: _Namespace) -> Namespace:
    return Namespace(namespace.metadata.name, namespace.metadata.labels or {})


NAMESPACES = cluster_wide("namespaces", "Namespace", "v1", wire=_Namespace, record=_record, metadata_only=True)
