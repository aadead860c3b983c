"""The cluster view from ordinary Kubernetes objects, as `kubectl get -o yaml` or `mpijob-webhook snapshot` writes it.

A kind of which there is any object is known completely: what is not there is absent. Of other kinds nothing is known.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import msgspec

from webhook.api import mpijob
from webhook.api.shape import ShapeError, decode_error
from webhook.cluster.resource import ByNamespace, K, Resource, T
from webhook.cluster.resources import looked_at
from webhook.cluster.store import Contents
from webhook.cluster.view import ABSENT, UNKNOWN, Answer, Unknown


class SnapshotError(ValueError):
    """An object cannot be used; the message names it."""


class Snapshot:
    """A ClusterView that never changes; `objects` are decoded Kubernetes objects, lists already opened.

    SnapshotError for an object that a view answers about but whose fields have wrong types or that has no name.
    """

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self._known: dict[Resource[Any, Any], Contents[Any, Any]] = {}
        self._jobs: dict[ByNamespace, Mapping[str, Any]] = {}
        resources = _by_kind()
        for document in objects:
            kind = (str(document.get("apiVersion")), str(document.get("kind")))
            for resource in resources.get(kind, ()):
                self._add(resource, document)
            if kind == (mpijob.API_VERSION, "MPIJob"):
                self._jobs[_job_key(document)] = document

    def get(self, resource: Resource[K, T], key: K) -> T | Answer:
        """The object with this key."""
        contents = self._known.get(resource)
        return UNKNOWN if contents is None else contents.records.get(key, ABSENT)

    def all(self, resource: Resource[K, T]) -> Mapping[K, T] | Unknown:
        """Every object there is, by key."""
        contents = self._known.get(resource)
        return UNKNOWN if contents is None else contents.records

    def within(self, resource: Resource[ByNamespace, T], namespace: str) -> Mapping[ByNamespace, T] | Unknown:
        """Every object in the namespace, by key."""
        contents = self._known.get(resource)
        return UNKNOWN if contents is None else contents.groups.get(namespace, {})

    def groups(self, resource: Resource[K, T]) -> Mapping[Hashable, Mapping[K, T]] | Unknown:
        """Every object there is, sorted by the resource's `group`."""
        contents = self._known.get(resource)
        return UNKNOWN if contents is None else contents.groups

    def stored(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The stored job as it was given, None where there is none."""
        return self._jobs.get((namespace, name))

    def _add(self, resource: Resource[Any, Any], document: Mapping[str, Any]) -> None:
        try:
            wire = msgspec.convert({"metadata": {}, **document}, resource.wire)
        except msgspec.ValidationError as error:
            raise SnapshotError(f"{_shown(document)}: {decode_error(error)}") from None
        metadata = wire.metadata
        if not metadata.name:
            raise SnapshotError(f"{_shown(document)}: metadata.name is missing")
        if resource.is_namespaced and not metadata.namespace:
            metadata.namespace = "default"
        try:
            record = resource.record(wire)
        except ValueError as error:
            raise SnapshotError(f"{_shown(document)}: {error}") from None
        contents = self._known.setdefault(resource, Contents(resource.group))
        if record is not None:
            contents.put(resource.key(metadata.namespace, metadata.name), record)


def _job_key(document: Mapping[str, Any]) -> ByNamespace:
    """(namespace, name) of a job; SnapshotError for one that cannot be read."""
    try:
        metadata = mpijob.decode(msgspec.json.encode(document)).metadata
    except ShapeError as error:
        raise SnapshotError(f"{_shown(document)}: {error}") from None
    if not metadata.name:
        raise SnapshotError(f"{_shown(document)}: metadata.name is missing")
    return metadata.namespace or "default", metadata.name


def _by_kind() -> dict[tuple[str, str], list[Resource[Any, Any]]]:
    """The resources by apiVersion and kind: more than one may look at the same objects."""
    found: dict[tuple[str, str], list[Resource[Any, Any]]] = {}
    for resource in looked_at():
        for version in resource.api_versions:
            found.setdefault((version, resource.kind), []).append(resource)
    return found


def _shown(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f'{document["kind"]} "{name}"' if name else f"a {document['kind']}"
