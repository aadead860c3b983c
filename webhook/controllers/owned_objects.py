"""Objects that a job owns, one of a kind for each job, named after it.

If the object seems to be missing it is created, never applied: a server-side apply would adopt an object of that name
from another owner. Only objects that the job controls are applied over, with their uid, so that the API server rejects
the call if the object was replaced. The job is its owner: the garbage collector deletes it, and no right to delete is
needed.
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
LATE_PAUSE: Final = 1.0  # a cache, or the garbage collector, is a moment behind
PATIENCE: Final = 60.0  # for the garbage collector: any user can write an owner that it never deletes
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
    """The uid of the MPIJob that controls it; empty where none does."""
    content: str
    """A hash of its spec and the value of its label."""


@dataclass(frozen=True, slots=True)
class OwnedKind:
    """A kind of such objects."""

    group_version: str
    kind: str
    plural: str
    label: str
    """Only objects with this label are watched."""
    foreign: str
    """The consequence of an object with that name that does not belong to the job."""
    unordered: tuple[str, ...] = ()
    """Lists of its spec whose order has no meaning."""

    def record(self, found: Mapping[str, Any]) -> SeenObject:
        """The part of an object that is compared."""
        return self._record(msgspec.convert(found, _Object))

    def watched(self) -> Kind[ByNamespace, SeenObject]:
        """The objects of all jobs, for a watch."""
        return Kind(
            self.plural,
            f"/apis/{self.group_version}/{self.plural}",
            key=by_namespace,
            project=lambda data: self._record(_decoder.decode(data)),
            label_selector=self.label,
        )

    def of_job(self, key: ByNamespace, uid: str, value: str, spec: Mapping[str, Any]) -> KubernetesObject:
        """The object of a job for the API server, with a value of the label."""
        namespace, name = key
        owner = {"apiVersion": mpijob.API_VERSION, "kind": "MPIJob", "name": name, "uid": uid, "controller": True}
        return {
            "apiVersion": self.group_version,
            "kind": self.kind,
            "metadata": {
                "name": f"{PREFIX}{name}",
                "namespace": namespace,
                "labels": {self.label: value, "app.kubernetes.io/managed-by": PROGRAM},
                # Without blockOwnerDeletion, for which OpenShift wants a right on the job's finalizers.
                "ownerReferences": [owner],
            },
            "spec": spec,
        }

    def _record(self, found: _Object) -> SeenObject:
        owners = [owner for owner in found.metadata.owner_references or () if owner.controller]
        uid = next((owner.uid for owner in owners if owner.kind == "MPIJob" and owner.group == mpijob.GROUP), "")
        filled = {name: value for name, value in (found.spec or {}).items() if value}  # an empty list is stored as none
        spec = {name: sorted(value) if name in self.unordered else value for name, value in filled.items()}
        content = [(found.metadata.labels or {}).get(self.label), spec]
        return SeenObject(uid, hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest())


class Writer:
    """Writes objects of one kind."""

    def __init__(self, api: PacedClient, kind: OwnedKind, log: Any) -> None:
        self._api, self._kind, self._log = api, kind, log
        self._clock = asyncio.get_running_loop().time
        self._taken_since: dict[ByNamespace, float] = {}

    def forget(self, key: ByNamespace) -> None:
        """The job is gone."""
        self._taken_since.pop(key, None)

    async def write(
        self, key: ByNamespace, body: KubernetesObject, wanted: SeenObject, seen: SeenObject | Answer
    ) -> float | None:
        """Create or replace it; seconds after which to look again where it is not for now."""
        kind = self._kind
        collection = f"/apis/{kind.group_version}/namespaces/{in_path(key[0])}/{kind.plural}"
        name = body["metadata"]["name"]
        if not isinstance(seen, SeenObject):
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
        there = await get(self._api, path)
        if there is None:
            return LATE_PAUSE
        theirs = kind.record(there)
        if theirs.owner != wanted.owner:
            waited = self._clock() - self._taken_since.setdefault(key, self._clock())
            if theirs.owner and waited < PATIENCE:
                return max(LATE_PAUSE, waited)  # of a job before this one: the garbage collector comes for it
            message = f"{kind.kind} {name} is there already and not of this job: {kind.foreign}. Delete it."
            await self.tell(key, body, "Foreign", message)
            raise ClusterError(f"{kind.kind} {key[0]}/{name} is not of the job")
        if theirs != wanted:
            metadata = {**body["metadata"], "uid": there["metadata"]["uid"]}
            target = f"{path}?fieldManager={PROGRAM}&force=true"
            await self._api.request("PATCH", target, {**body, "metadata": metadata})
            self._log.info(f"{kind.kind} written", namespace=key[0], job=key[1])
        self.forget(key)
        return None

    async def tell(self, key: ByNamespace, body: KubernetesObject, what: str, message: str) -> None:
        """A Warning Event about the job; one for all replicas, and one an hour at most."""
        owner, reason = body["metadata"]["ownerReferences"][0], f"{self._kind.kind}{what}"
        about = {name: owner[name] for name in ("apiVersion", "kind", "name", "uid")}
        once = f"{owner['uid']}/{reason}"
        with suppress(ClusterError):
            await write_event(self._api, key[0], about, reason=reason, message=message, kind="Warning", key=once)


def in_path(name: Hashable) -> str:
    """As part of a path."""
    return quote(str(name), safe="")
