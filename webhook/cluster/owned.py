"""Records of objects that have only an existence, an owner and a deletion mark."""

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
    """An object in a namespace, the controller that made it, and whether it is being deleted."""

    namespace: str
    name: str
    owner: Owner | None = None
    deleted: bool = False


class OwnedMetadata(Metadata):
    """Metadata with owners."""

    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None


class OwnedWire(Wire):
    """The object itself."""

    metadata: OwnedMetadata


def owned(decoded: OwnedWire) -> Owned:
    """The record of an object. Equal values are shared, since there are many objects."""
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
    """Cached: the pods of a job follow each other in a list."""
    return Owner(*map(sys.intern, (group, kind, name, uid)))
