"""Records that contain only the name of an object, its controller, and whether the object is being deleted."""

import sys
from functools import lru_cache

import msgspec

from webhook.api.metadata import OwnerReference
from webhook.cluster.resource import Metadata, Wire


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The controller of an object, such as the Job of a pod."""

    group: str
    """The API group."""
    kind: str
    name: str
    uid: str


class Owned(msgspec.Struct, frozen=True, gc=False):
    """An object in a namespace, and its controller."""

    namespace: str
    name: str
    owner: Owner | None = None
    deleted: bool = False
    """Whether the object is being deleted."""


class OwnedMetadata(Metadata):
    """Metadata with owners."""

    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None


class OwnedWire(Wire):
    """An object with only its metadata."""

    metadata: OwnedMetadata


def owned(decoded: OwnedWire) -> Owned:
    metadata = decoded.metadata
    owner = next((owner for owner in metadata.owner_references or () if owner.controller), None)
    return Owned(
        sys.intern(metadata.namespace),
        sys.intern(metadata.name),
        None if owner is None else _owner(owner.group, owner.kind, owner.name, owner.uid),
        metadata.deletion_timestamp is not None,
    )


# Successive pods of a list often have the same owner, and share this record.
@lru_cache(maxsize=256)
def _owner(group: str, kind: str, name: str, uid: str) -> Owner:
    return Owner(*map(sys.intern, (group, kind, name, uid)))
