"""Objects of which only counts that they are there, whose they are, and whether they are about to go."""

from dataclasses import dataclass

import msgspec

from webhook.cluster.resource import Metadata, Wire


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of an object; `group` is its API group."""

    group: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Owned:
    """An object in a namespace, the controller that made it, and whether it is being deleted."""

    namespace: str
    name: str
    owner: Owner | None = None
    deleted: bool = False


class OwnerReference(msgspec.Struct, rename="camel", omit_defaults=True):
    """An owner; `controller` is true for at most one."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class OwnedMetadata(Metadata):
    """Metadata with owners."""

    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None


class OwnedWire(Wire):
    """The object itself."""

    metadata: OwnedMetadata


def owned(found: OwnedWire) -> Owned:
    """The record of an object."""
    metadata = found.metadata
    controllers = (owner for owner in metadata.owner_references or () if owner.controller)
    return Owned(
        metadata.namespace,
        metadata.name,
        next((Owner(o.api_version.rpartition("/")[0], o.kind, o.name, o.uid) for o in controllers), None),
        metadata.deletion_timestamp is not None,
    )
