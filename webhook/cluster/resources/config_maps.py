"""ConfigMaps: their owners and keys, never their data.

The API server sends only metadata, which has the keys in `managedFields`
(https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers). A snapshot file may contain the data.
"""

import sys
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from webhook.cluster.limits import MAX_CONFIG_MAP_KEYS_CHARACTERS
from webhook.cluster.owned import Owned, OwnedMetadata, OwnedWire, owned
from webhook.cluster.resource import namespaced

_BEFORE_NAME: Final = "f:"


class ConfigMap(Owned, frozen=True, gc=False):
    """A ConfigMap."""

    keys: tuple[str, ...] | None = None
    """The keys of the data; None if they are unknown or too long to cache."""


class _Fields(msgspec.Struct):
    data: dict[str, Any] | None = msgspec.field(default=None, name="f:data")
    binary_data: dict[str, Any] | None = msgspec.field(default=None, name="f:binaryData")


class _Manager(msgspec.Struct, rename="camel"):
    fields_v1: _Fields | None = None


class _Metadata(OwnedMetadata, rename="camel", omit_defaults=True):
    managed_fields: list[_Manager] | None = None


class _ConfigMap(OwnedWire, rename="camel", omit_defaults=True):
    metadata: _Metadata
    data: dict[str, Any] | None = None
    binary_data: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        # A snapshot file gets `data` with all keys and empty values.
        names: Iterable[str] | None = None
        if self.data is not None or self.binary_data is not None:
            names = {*(self.data or ()), *(self.binary_data or ())}
        elif self.metadata.managed_fields:
            fields = [manager.fields_v1 for manager in self.metadata.managed_fields if manager.fields_v1 is not None]
            keys = {key for field in fields for key in (*(field.data or ()), *(field.binary_data or ()))}
            names = [key.removeprefix(_BEFORE_NAME) for key in keys if key.startswith(_BEFORE_NAME)]
        self.data = None if names is None else dict.fromkeys(sorted(names), "")
        self.binary_data = self.metadata.managed_fields = None


def _record(decoded: _ConfigMap) -> ConfigMap:
    base, names = owned(decoded), decoded.data
    within_limit = names is not None and sum(map(len, names)) <= MAX_CONFIG_MAP_KEYS_CHARACTERS
    keys = tuple(map(sys.intern, names or ())) if within_limit else None
    return ConfigMap(base.namespace, base.name, base.owner, base.deleted, keys)


CONFIG_MAPS = namespaced("configmaps", "ConfigMap", "v1", wire=_ConfigMap, record=_record, metadata_only=True)
