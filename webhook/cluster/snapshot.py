"""A cluster view from Kubernetes objects in files, written by `kubectl get -o yaml` or `mpijob-webhook snapshot`.

A query for an object that is not in the file is answered with ABSENT if the file is complete for the kind, else with
UNKNOWN. The file's first document, ClusterSnapshot, lists the complete kinds. A file without this document is complete
for each kind that it contains.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from webhook.api import mpijob
from webhook.api.shape import ShapeError, decode_error
from webhook.cluster.contents import Contents
from webhook.cluster.resource import ByNamespace, K, Metadata, Resource, T, Wire
from webhook.cluster.resources import watched_resources
from webhook.cluster.scc_grants import SCC_GRANTS
from webhook.cluster.view import ABSENT, UNKNOWN, Answer, Unknown

API_VERSION: Final = "policy.training.openshift.io/v1"
KIND: Final = "ClusterSnapshot"
NOT_INSTALLED: Final = "not installed"
"""The reason in `Head.unknown` for a kind that the cluster does not have."""


class SnapshotError(ValueError):
    """An object in the file is invalid. The message names the object."""


class Extent(msgspec.Struct, rename="camel", omit_defaults=True):
    """The objects of one resource that are in the file."""

    namespaces: list[str] | None = None
    """The namespaces for which the file is complete; None for all namespaces."""
    unreadable: list[str] = []
    """Objects that could not be read, as `name` or `namespace/name`."""


class Head(msgspec.Struct, rename="camel", omit_defaults=True):
    """The first document of a file."""

    known: dict[str, Extent] = {}
    """The objects in the file, by the name of the resource."""
    unknown: dict[str, str] = {}
    """The reason why a resource could not be read, by the name of the resource."""

    def document(self) -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": KIND, **msgspec.to_builtins(self)}


@dataclass(slots=True)
class _Part:
    contents: Contents[Any, Any]
    namespaces: frozenset[str] | None = None
    """The namespaces in which the records are complete; None for all namespaces."""

    def is_complete(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces


class Snapshot:
    """A ClusterView that never changes, from decoded Kubernetes objects (no Lists).

    SnapshotError if an object of a watched kind has no name or a field of the wrong type.
    """

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        documents = list(objects)
        self.jobs: dict[ByNamespace, Mapping[str, Any]] = {}
        """The MPIJobs with all their fields."""
        heads = [_head(document) for document in documents if _kind(document) == (API_VERSION, KIND)]
        self._parts = {resource: _part(resource, heads) for resource in watched_resources() if heads}
        self._missing = {name for head in heads for name, why in head.unknown.items() if why == NOT_INSTALLED}
        resources = _by_kind()
        for document in documents:
            if _kind(document) == (mpijob.API_VERSION, "MPIJob"):
                self.jobs[_job_key(document)] = document
            for resource in resources.get(_kind(document), ()):
                self._add(resource, document)

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        part = self._parts.get(resource)
        if part is None or key in part.contents.unreadable:
            return UNKNOWN
        record: T | None = part.contents.records.get(key)
        if record is not None:
            return record
        namespace = cast("ByNamespace", key)[0] if resource.is_namespaced else str(key)
        return ABSENT if part.is_complete(namespace) else UNKNOWN

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        contents = self._complete(resource)
        return UNKNOWN if contents is None else contents.records

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        part = self._parts.get(resource)
        if part is None or not part.is_complete(namespace) or namespace in {key[0] for key in part.contents.unreadable}:
            return UNKNOWN
        return part.contents.groups.get(namespace, {})

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        contents = self._complete(resource)
        return UNKNOWN if contents is None else contents.groups

    def not_served(self, resource: Resource[Any, Any]) -> bool:
        return resource.name in self._missing

    def _complete(self, resource: Resource[K, T]) -> Contents[K, T] | None:
        part = self._parts.get(resource)
        if part is None or part.contents.unreadable:
            return None
        # A resource with a `place` is complete if its only namespace was read.
        return part.contents if part.namespaces is None or (resource.place and part.namespaces) else None

    def _add(self, resource: Resource[Any, Any], document: Mapping[str, Any]) -> None:
        metadata = _metadata(document)
        key = resource.key(metadata.namespace or "default", metadata.name)
        part = self._parts.get(resource)
        if not _selects(resource, part, metadata) or (part is not None and key in part.contents.unreadable):
            return
        try:
            wire = msgspec.convert(document, resource.wire)
            if resource.is_namespaced and not metadata.namespace:
                wire.metadata.namespace = "default"
            record = resource.record(wire)
        except msgspec.ValidationError as error:
            raise SnapshotError(f"{_shown(document)}: {decode_error(error)}") from None
        except ValueError as error:
            raise SnapshotError(f"{_shown(document)}: {error}") from None
        contents = self._parts.setdefault(resource, _Part(Contents(resource.group))).contents
        if record is not None:
            contents.put(key, record)


def _selects(resource: Resource[Any, Any], part: _Part | None, metadata: Metadata) -> bool:
    """Whether a watch of the resource would include this object of its kind."""
    if resource.place and part is not None and not part.is_complete(metadata.namespace):
        return False
    return not resource.field_selector or resource.field_selector == f"metadata.name={metadata.name}"


def _part(resource: Resource[Any, Any], heads: Iterable[Head]) -> _Part:
    """A part without records. Its namespaces and unreadable objects are from `heads`."""
    part = _Part(Contents(resource.group), frozenset())
    for extent in (head.known[resource.name] for head in heads if resource.name in head.known):
        if part.namespaces is not None and extent.namespaces is not None:
            part.namespaces |= frozenset(extent.namespaces)
        else:
            part.namespaces = None
        for key in extent.unreadable:
            namespace, _, name = key.rpartition("/")
            part.contents.unreadable.add(resource.key(namespace, name))
    return part


def _head(document: Mapping[str, Any]) -> Head:
    try:
        return msgspec.convert(document, Head)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"the {KIND}: {decode_error(error)}") from None


def _metadata(document: Mapping[str, Any]) -> Metadata:
    try:
        metadata = msgspec.convert({"metadata": {}, **document}, Wire).metadata
    except msgspec.ValidationError as error:
        raise SnapshotError(f"{_shown(document)}: {decode_error(error)}") from None
    if not metadata.name:
        raise SnapshotError(f"{_shown(document)}: metadata.name is missing")
    return metadata


def _job_key(document: Mapping[str, Any]) -> ByNamespace:
    try:
        metadata = mpijob.decode(msgspec.json.encode(document)).metadata
    except ShapeError as error:
        raise SnapshotError(f"{_shown(document)}: {error}") from None
    if not metadata.name:
        raise SnapshotError(f"{_shown(document)}: metadata.name is missing")
    return metadata.namespace or "default", metadata.name


def _by_kind() -> dict[tuple[str, str], list[Resource[Any, Any]]]:
    """The resources by (apiVersion, kind). Several resources may have the same kind."""
    resources: dict[tuple[str, str], list[Resource[Any, Any]]] = {}
    for resource in (*watched_resources(), SCC_GRANTS):
        for version in resource.api_versions:
            resources.setdefault((version, resource.kind), []).append(resource)
    return resources


def _kind(document: Mapping[str, Any]) -> tuple[str, str]:
    return str(document.get("apiVersion")), str(document.get("kind"))


def _shown(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f'{document["kind"]} "{name}"' if name else f"a {document['kind']}"
