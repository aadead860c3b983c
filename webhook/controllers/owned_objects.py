"""Objects that a job owns: one object per kind and job, named after the job.

A missing object is created, not applied, because a server-side apply would take over another owner's object with the
same name. An existing object is only changed if the job controls it. The change contains its uid, so the API server
rejects the change if the object was replaced. The garbage collector deletes the object with its owner, so the service
needs no permission to delete it.
"""

import asyncio
import hashlib
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from webhook import PROGRAM
from webhook.api import mpijob
from webhook.api.metadata import OwnerReference
from webhook.client.calls import ApiError, ClusterError
from webhook.client.objects import KubernetesObject, get, write_event
from webhook.client.store import Kind, by_namespace
from webhook.cluster.resource import ByNamespace
from webhook.cluster.view import Answer
from webhook.controllers.reconciler import PacedClient

PREFIX: Final = "mpijob-"
OPERATOR_NAME: Final = "training.kubeflow.org/operator-name"
JOB_NAME: Final = "training.kubeflow.org/job-name"
# Seconds.
RESYNC: Final = 600.0
UNKNOWN_PAUSE: Final = 30.0
LATE_PAUSE: Final = 1.0  # pause in which the cache is updated, or the garbage collector works
PATIENCE: Final = (
    60.0  # maximum wait for the garbage collector, which may never delete the object: a user can set any owner
)
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404


class _Metadata(msgspec.Struct, rename="camel"):
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata
    spec: dict[str, Any] | None = None


_decoder: Final = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, slots=True)
class SeenObject:
    """An object that exists."""

    owner: str
    """The uid of the MPIJob that controls the object; empty if no MPIJob does."""
    content: str
    """A hash of the spec and the label's value."""


@dataclass(frozen=True, slots=True)
class OwnedKind:
    """A kind of objects that jobs own."""

    group_version: str
    kind: str
    plural: str
    label: str
    """Only objects with this label are watched."""
    foreign: str
    """The consequence, for a message, of an object with the same name that does not belong to the job."""
    unordered: tuple[str, ...] = ()
    """Lists in the spec whose order has no meaning."""

    def record(self, found: Mapping[str, Any]) -> SeenObject:
        """The part of an object that is compared."""
        return self._record(msgspec.convert(found, _Object))

    def watched(self) -> Kind[ByNamespace, SeenObject]:
        """The resource for a watch of the objects of all jobs."""
        return Kind(
            self.plural,
            f"/apis/{self.group_version}/{self.plural}",
            key=by_namespace,
            project=lambda data: self._record(_decoder.decode(data)),
            label_selector=self.label,
        )

    def of_job(self, key: ByNamespace, uid: str, value: str, spec: Mapping[str, Any]) -> KubernetesObject:
        """The object of a job for the API server, with this value of the label."""
        namespace, name = key
        owner = {"apiVersion": mpijob.API_VERSION, "kind": "MPIJob", "name": name, "uid": uid, "controller": True}
        return {
            "apiVersion": self.group_version,
            "kind": self.kind,
            "metadata": {
                "name": f"{PREFIX}{name}",
                "namespace": namespace,
                "labels": {self.label: value, "app.kubernetes.io/managed-by": PROGRAM},
                # Without blockOwnerDeletion, which requires permission for the job's finalizers on OpenShift.
                "ownerReferences": [owner],
            },
            "spec": spec,
        }

    def _record(self, existing: _Object) -> SeenObject:
        owners = [owner for owner in existing.metadata.owner_references or () if owner.controller]
        uid = next((owner.uid for owner in owners if owner.kind == "MPIJob" and owner.group == mpijob.GROUP), "")
        # The API server does not store an empty list.
        filled = {name: value for name, value in (existing.spec or {}).items() if value}
        spec = {name: sorted(value) if name in self.unordered else value for name, value in filled.items()}
        content = [(existing.metadata.labels or {}).get(self.label), spec]
        return SeenObject(uid, hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest())


class Writer:
    """Writes objects of one kind."""

    def __init__(self, api: PacedClient, kind: OwnedKind, log: Any) -> None:
        self._api, self._kind, self._log = api, kind, log
        self._clock = asyncio.get_running_loop().time
        self._taken_since: dict[ByNamespace, float] = {}

    def forget(self, key: ByNamespace) -> None:
        """Forget a deleted job."""
        self._taken_since.pop(key, None)

    async def write(
        self, key: ByNamespace, body: KubernetesObject, desired: SeenObject, cached: SeenObject | Answer
    ) -> float | None:
        """Create or replace the object; returns the seconds until the next attempt, or None if it is done."""
        kind = self._kind
        collection = f"/apis/{kind.group_version}/namespaces/{in_path(key[0])}/{kind.plural}"
        name = body["metadata"]["name"]
        if not isinstance(cached, SeenObject):
            try:
                await self._api.request("POST", f"{collection}?fieldManager={PROGRAM}", body)
            except ApiError as error:
                if error.status == _NOT_FOUND:
                    return None  # the namespace is gone
                if error.status != _CONFLICT:
                    raise
            else:
                self._log.info(f"{kind.kind} created", namespace=key[0], job=key[1])
                self.forget(key)
                return None
        path = f"{collection}/{in_path(name)}"
        stored = await get(self._api, path)
        if stored is None:
            return LATE_PAUSE
        existing = kind.record(stored)
        if existing.owner != desired.owner:
            waited = self._clock() - self._taken_since.setdefault(key, self._clock())
            if existing.owner and waited < PATIENCE:
                return max(LATE_PAUSE, waited)  # an earlier job's object, which the garbage collector will delete
            message = f"{kind.kind} {name} already exists and does not belong to this job: {kind.foreign}. Delete it."
            await self.tell(key, body, "Foreign", message)
            raise ClusterError(f"{kind.kind} {key[0]}/{name} does not belong to the job")
        if existing != desired:
            metadata = {**body["metadata"], "uid": stored["metadata"]["uid"]}
            target = f"{path}?fieldManager={PROGRAM}&force=true"
            await self._api.request("PATCH", target, {**body, "metadata": metadata})
            self._log.info(f"{kind.kind} written", namespace=key[0], job=key[1])
        self.forget(key)
        return None

    async def tell(self, key: ByNamespace, body: KubernetesObject, what: str, message: str) -> None:
        """Write a Warning Event about the job: one for all replicas, at most one per hour."""
        owner, reason = body["metadata"]["ownerReferences"][0], f"{self._kind.kind}{what}"
        about = {name: owner[name] for name in ("apiVersion", "kind", "name", "uid")}
        once = f"{owner['uid']}/{reason}"
        with suppress(ClusterError):
            await write_event(self._api, key[0], about, reason=reason, message=message, kind="Warning", key=once)


def in_path(name: Hashable) -> str:
    """The name, escaped for a path."""
    return quote(str(name), safe="")
