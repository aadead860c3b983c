"""Namespaces, their labels and annotations."""

import msgspec

from webhook.cluster.limits import MAX_ANNOTATION_CHARACTERS
from webhook.cluster.resource import Metadata, Wire, cluster_wide

UID_RANGE = "openshift.io/sa.scc.uid-range"


class Namespace(msgspec.Struct, frozen=True):
    """A namespace."""

    name: str
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    """A value is cut after `MAX_ANNOTATION_CHARACTERS` + 1 characters, so that its length shows the cut."""

    @property
    def of_openshift(self) -> bool:
        """Whether OpenShift has reserved user ids for the namespace's pods."""
        return UID_RANGE in self.annotations


class _Metadata(Metadata):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Namespace(Wire):
    metadata: _Metadata


def _record(namespace: _Namespace) -> Namespace:
    metadata = namespace.metadata
    annotations = {key: value[: MAX_ANNOTATION_CHARACTERS + 1] for key, value in (metadata.annotations or {}).items()}
    return Namespace(metadata.name, metadata.labels or {}, annotations)


NAMESPACES = cluster_wide("namespaces", "Namespace", "v1", wire=_Namespace, record=_record, metadata_only=True)
