"""Namespaces, their labels and annotations."""

from typing import Final

import msgspec

from webhook.cluster.resource import Metadata, Wire, cluster_wide

LONGEST_ANNOTATION: Final = 256
"""Characters of one that is read. Some tools keep whole objects in theirs."""


class Namespace(msgspec.Struct, frozen=True):
    """A namespace and its labels."""

    name: str
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    """Each up to `LONGEST_ANNOTATION` characters and one more, which tells that it is longer."""


class _Metadata(Metadata):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Namespace(Wire):
    metadata: _Metadata


def _record(namespace: _Namespace) -> Namespace:
    metadata = namespace.metadata
    annotations = {key: value[: LONGEST_ANNOTATION + 1] for key, value in (metadata.annotations or {}).items()}
    return Namespace(metadata.name, metadata.labels or {}, annotations)


NAMESPACES = cluster_wide("namespaces", "Namespace", "v1", wire=_Namespace, record=_record, metadata_only=True)
