"""The declaration of a watched resource of the API server."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

import msgspec

from webhook.cluster.budget import Budget

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
W = TypeVar("W", bound="Wire")

ByNamespace = tuple[str, str]
"""The key of an object in a namespace: (namespace, name)."""

KUEUE_NAMESPACE: Final = "kueue-system"
"""Kueue's namespace in Kueue's own manifests."""


class WatchedPlace(Enum):
    """A namespace whose name differs between clusters."""

    OWN = "own"  # the namespace of this service
    KUEUE = "kueue"


class Metadata(msgspec.Struct, rename="camel", omit_defaults=True):
    """The metadata that every resource reads."""

    name: str = ""
    namespace: str = ""


class Wire(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """The fields of an object that are read. Each resource has a subclass with its own fields."""

    metadata: Metadata


@dataclass(frozen=True, eq=False, kw_only=True)
class Resource(Generic[K, T]):
    """A watched resource. Create it with `namespaced` or `cluster_wide`."""

    plural: str
    kind: str
    api_versions: tuple[str, ...]
    """The supported versions. The service watches the first version that the cluster serves."""
    is_namespaced: bool
    wire: type[Wire]
    """The fields that are read. A snapshot file contains only these fields."""
    record: Callable[[Any], T | None]
    """Makes the small frozen record to cache. Returns None for an object to ignore.

    A record must not refer to the decoded object, which would then stay in memory.
    """
    group: Callable[[T], Hashable] | None = None
    """Returns the group of a record."""
    budget: Budget[T] | None = None
    """The memory limit for records whose size users control."""
    metadata_only: bool = False
    """The API server sends only the metadata of objects."""
    label_selector: str = ""
    field_selector: str = ""
    place: WatchedPlace | None = None
    """The only namespace that is watched; None for all namespaces."""
    alias: str = ""
    """The `name` of a resource whose plural is not unique."""
    awaited: bool = True
    """Whether the service waits for the first list before it is ready."""

    @property
    def name(self) -> str:
        """A unique name for logs, metrics and snapshots."""
        return self.alias or (f"{self.place.value}-{self.plural}" if self.place else self.plural)

    def path(self, api_version: str, namespace: str = "") -> str:
        """The path of the collection, in `namespace` or in all namespaces."""
        prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{prefix}{within}/{self.plural}"

    @property
    def api_group(self) -> str:
        """The API group; empty for the core group."""
        group, separator, _ = self.api_versions[0].rpartition("/")
        return group if separator else ""

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Wire]:
        return msgspec.json.Decoder(self.wire)

    def project(self, data: bytes | msgspec.Raw) -> T | None:
        """The record of an object in JSON. An unreadable object raises msgspec.DecodeError or any error of `record`."""
        return self.record(self.decoder.decode(data))

    def key(self, namespace: str, name: str) -> K:
        return (namespace, name) if self.is_namespaced else name  # type: ignore[return-value]

    def trim(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The object with only the fields in `wire`; msgspec.ValidationError if it cannot be read."""
        kept: dict[str, Any] = msgspec.to_builtins(msgspec.convert(document, self.wire))
        return {"apiVersion": self.api_versions[0], "kind": self.kind, **kept}


def namespaced(
    plural: str, kind: str, *api_versions: str, wire: type[W], record: Callable[[W], T | None], **options: Any
) -> Resource[ByNamespace, T]:
    """A namespaced resource. `options` are fields of Resource. By default, records are grouped by their `namespace`."""
    options = {"group": _namespace, **options}
    return Resource(
        plural=plural, kind=kind, api_versions=api_versions, is_namespaced=True, wire=wire, record=record, **options
    )


def cluster_wide(
    plural: str, kind: str, *api_versions: str, wire: type[W], record: Callable[[W], T | None], **options: Any
) -> Resource[str, T]:
    """A cluster-wide resource. `options` are fields of Resource."""
    return Resource(
        plural=plural, kind=kind, api_versions=api_versions, is_namespaced=False, wire=wire, record=record, **options
    )


def _namespace(record: Any) -> Hashable:
    return record.namespace  # type: ignore[no-any-return]
