"""Records of objects of which only the existence, the owner and the deletion matter."""

import sys
from functools import lru_cache

import msgspec

from webhook.api.metadata import OwnerReference
from webhook.cluster.resource import Metadata, Wire


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The controller of an object; `group` is its API group."""

    group: str
    kind: str
    name: str
    uid: str


class Owned(msgspec.Struct, frozen=True, gc=False):
    """An object in a namespace, its controller, and whether it is being deleted."""

    namespace: str
    name: str
    owner: Owner | None = None
    deleted: bool = False


class OwnedMetadata(Metadata):
    """Metadata with owners."""

    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None


class OwnedWire(Wire):
    """An object with only its metadata."""

    metadata: OwnedMetadata


def owned(decoded: OwnedWire) -> Owned:
    """The record of an object. Equal owners are the same Python object, to save memory."""
    metadata = decoded.metadata
    controllers = (owner for owner in metadata.owner_references or () if owner.controller)
    return Owned(
        sys.intern(metadata.namespace),
        sys.intern(metadata.name),
        next((_owner(each.group, each.kind, each.name, each.uid) for each in controllers), None),
        metadata.deletion_timestamp is not None,
    )


@lru_cache(maxsize=256)
def _owner(group: str, kind: str, name: str, uid: str) -> Owner:
    """Cached, because successive pods in a list often have the same owner."""
    return Owner(*map(sys.intern, (group, kind, name, uid)))
