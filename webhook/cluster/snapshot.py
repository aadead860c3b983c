"""The cluster view from ordinary Kubernetes objects, as `kubectl get ... -o yaml` prints them.

A kind of which there is any object is known completely: what is not there is absent. Of other kinds nothing is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from webhook.api import mpijob
from webhook.api.mpijob import MPIJob, ObjectMeta
from webhook.api.shape import ShapeError, decode_error
from webhook.api.volume import Claim
from webhook.cluster.view import (
    ABSENT,
    UNKNOWN,
    Answer,
    Namespace,
    PersistentVolumeClaim,
    PriorityClass,
    WorkloadPriorityClass,
)

K = TypeVar("K")
T = TypeVar("T")


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
        self._priority_classes: dict[str, PriorityClass] = {}
        self._workload_priority_classes: dict[str, WorkloadPriorityClass] = {}
        self._claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
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
                case "scheduling.k8s.io/v1", "PriorityClass":
                    name = _metadata(document).name
                    self._priority_classes[name] = PriorityClass(name)
                case "kueue.x-k8s.io/v1beta1" | "kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass":
                    name = _metadata(document).name
                    self._workload_priority_classes[name] = WorkloadPriorityClass(name)
                case "v1", "PersistentVolumeClaim":
                    claim = _claim(document)
                    self._claims[claim.namespace, claim.name] = claim

    def namespaces(self) -> Sequence[Namespace] | Answer:
        """Every namespace in the file; UNKNOWN when it has none."""
        return list(self._namespaces.values()) or UNKNOWN

    def namespace(self, name: str) -> Namespace | Answer:
        """The namespace called `name`."""
        return _known(self._namespaces, name)

    def mpijob(self, namespace: str, name: str) -> MPIJob | Answer:
        """The stored job; the record must not be changed."""
        return _known(self._jobs, (namespace, name))

    def priority_class(self, name: str) -> PriorityClass | Answer:
        """The PriorityClass called `name`."""
        return _known(self._priority_classes, name)

    def workload_priority_class(self, name: str) -> WorkloadPriorityClass | Answer:
        """Kueue's WorkloadPriorityClass called `name`."""
        return _known(self._workload_priority_classes, name)

    def persistent_volume_claim(self, namespace: str, name: str) -> PersistentVolumeClaim | Answer:
        """The claim called `name` in `namespace`."""
        return _known(self._claims, (namespace, name))

    def stored(self, namespace: str, name: str) -> dict[str, Any] | None:
        """The stored job as it was given, None where there is none."""
        return self._stored.get((namespace, name))


def _known(records: Mapping[K, T], key: K) -> T | Answer:
    return records.get(key, ABSENT if records else UNKNOWN)


def _metadata(document: dict[str, Any]) -> ObjectMeta:
    metadata = _convert(document, _Object).metadata
    if not metadata.name:
        raise SnapshotError(f"{_shown(document)}: metadata.name is missing")
    return metadata


def _convert(document: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"{_shown(document)}: {decode_error(error)}") from None


def _claim(document: dict[str, Any]) -> PersistentVolumeClaim:
    metadata = _metadata(document)
    storage_class = _convert(document, Claim).storage_class
    return PersistentVolumeClaim(metadata.namespace or "default", metadata.name, storage_class)


def _job(document: dict[str, Any]) -> MPIJob:
    try:
        return mpijob.decode(msgspec.json.encode(document))
    except ShapeError as error:
        raise SnapshotError(f"{_shown(document)}: {error}") from None


def _shown(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f'{document["kind"]} "{name}"' if name else f"a {document['kind']}"
