"""The cluster view from ordinary Kubernetes objects, as `kubectl get ... -o yaml` prints them.

A kind of which there is any object is known completely: what is not there is absent. Of other kinds nothing is known.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from webhook.api import mpijob
from webhook.api.mpijob import MPIJob, ObjectMeta
from webhook.api.shape import ShapeError, decode_error
from webhook.cluster.view import ABSENT, UNKNOWN, Answer, Namespace


class SnapshotError(ValueError):
    """An object cannot be used; the message names it."""


class _Object(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class Snapshot:
    """A ClusterView that never changes; `objects` are decoded Kubernetes objects, lists already opened.

    SnapshotError for an object that a view answers about but whose fields have wrong types or that has no name.
    """

    def __init__(self, objects: Iterable[dict[str, Any]]) -> None:
        self._namespaces: dict[str, Namespace] = {}
        self._jobs: dict[tuple[str, str], MPIJob] = {}
        self._stored: dict[tuple[str, str], dict[str, Any]] = {}
        for document in objects:
            match document.get("apiVersion"), document.get("kind"):
                case "v1", "Namespace":
                    metadata = _metadata(document)
                    self._namespaces[metadata.name] = Namespace(metadata.name, metadata.labels or {})
                case mpijob.API_VERSION, "MPIJob":
                    metadata = _metadata(document)
                    key = (metadata.namespace or "default", metadata.name)
                    self._jobs[key] = _job(document)
                    self._stored[key] = document

    def namespace(self, name: str) -> Namespace | Answer:
        """The namespace called `name`."""
        return self._namespaces.get(name, ABSENT if self._namespaces else UNKNOWN)

    def mpijob(self, namespace: str, name: str) -> MPIJob | Answer:
        """The stored job; the record must not be changed."""
        return self._jobs.get((namespace, name), ABSENT if self._jobs else UNKNOWN)

    def stored(self, namespace: str, name: str) -> dict[str, Any] | None:
        """The stored job as it was given, None where there is none."""
        return self._stored.get((namespace, name))


def _metadata(document: dict[str, Any]) -> ObjectMeta:
    try:
        metadata = msgspec.convert(document, _Object).metadata
    except msgspec.ValidationError as error:
        raise SnapshotError(f"{_shown(document)}: {decode_error(error)}") from None
    if not metadata.name:
        raise SnapshotError(f"{_shown(document)}: metadata.name is missing")
    return metadata


def _job(document: dict[str, Any]) -> MPIJob:
    try:
        return mpijob.decode(msgspec.json.encode(document))
    except ShapeError as error:
        raise SnapshotError(f"{_shown(document)}: {error}") from None


def _shown(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f'{document["kind"]} "{name}"' if name else f"a {document['kind']}"
