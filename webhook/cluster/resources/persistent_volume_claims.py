"""PersistentVolumeClaims: their storage classes and access modes."""

import msgspec

from webhook.api.pod import STORAGE_CLASS
from webhook.cluster.resource import Metadata, Wire, namespaced


class PersistentVolumeClaim(msgspec.Struct, frozen=True):
    """A claim."""

    namespace: str
    name: str
    storage_class: str | None
    """The storage class; None for the cluster's default class, empty for a volume without a class."""
    access_modes: tuple[str, ...] = ()


class _Metadata(Metadata):
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    storage_class_name: str | None = None
    access_modes: list[str] | None = None


class _Claim(Wire):
    metadata: _Metadata
    spec: _Spec | None = None


def _record(claim: _Claim) -> PersistentVolumeClaim:
    annotations = claim.metadata.annotations or {}
    storage_class = annotations.get(STORAGE_CLASS, claim.spec.storage_class_name if claim.spec else None)
    modes = tuple(claim.spec.access_modes or ()) if claim.spec else ()
    return PersistentVolumeClaim(claim.metadata.namespace, claim.metadata.name, storage_class, modes)


PERSISTENT_VOLUME_CLAIMS = namespaced(
    "persistentvolumeclaims", "PersistentVolumeClaim", "v1", wire=_Claim, record=_record
)
