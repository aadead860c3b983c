"""Objects that a job owns: one object per kind and job, named after the job.

A missing object is created, not applied: a server-side apply would take over another owner's object with the same name.
An existing object is changed only if the job controls it. The change contains the object's uid, so the API server
rejects the change if the object was replaced. The garbage collector deletes the object, so the service needs no
permission to delete it.
"""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import quote

import msgspec

from webhook import PROGRAM
from webhook.api import mpijob
from webhook.api.metadata import OwnerReference
from webhook.client.calls import ApiError, ClusterError
from webhook.client.live_view import LiveView
from webhook.client.objects import KubernetesObject, get, write_event
from webhook.client.store import Kind, by_namespace
from webhook.client.watch import Watch
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import Answer
from webhook.controllers.reconciler import PacedClient, Reconciler, Restraint
from webhook.policy.document import PolicyDocument
from webhook.policy.in_force import PolicySet

PREFIX: Final = "mpijob-"
OPERATOR_NAME: Final = "training.kubeflow.org/operator-name"
JOB_NAME: Final = "training.kubeflow.org/job-name"
# Seconds.
RESYNC: Final = 600.0
UNKNOWN_PAUSE: Final = 30.0
LATE_PAUSE: Final = 1.0  # while the cache is updated, or the garbage collector works
# The longest wait until the garbage collector deletes another owner's object. If the owner still exists, the garbage
# collector does not delete the object.
PATIENCE: Final = 60.0
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
    """An existing object."""

    owner: str
    """The uid of the MPIJob that controls the object; empty if none does."""
    content: str
    """A hash of the spec and of the label's value."""


@dataclass(frozen=True, slots=True)
class OwnedKind:
    """A kind of objects that jobs own."""

    group_version: str
    kind: str
    plural: str
    label: str
    foreign: str
    """For a message: the consequence of a foreign object with the same name."""
    unordered: tuple[str, ...] = ()
    """Lists in the spec whose order has no meaning."""

    def record(self, content: Mapping[str, Any]) -> SeenObject:
        return self._record(msgspec.convert(content, _Object))

    def watched(self) -> Kind[ByNamespace, SeenObject]:
        return Kind(
            self.plural,
            f"/apis/{self.group_version}/{self.plural}",
            key=by_namespace,
            project=lambda data: self._record(_decoder.decode(data)),
            label_selector=self.label,
        )

    def of_job(self, key: ByNamespace, uid: str, value: str, spec: Mapping[str, Any]) -> KubernetesObject:
        """`value` is the value of the label."""
        namespace, name = key
        owner = {"apiVersion": mpijob.API_VERSION, "kind": "MPIJob", "name": name, "uid": uid, "controller": True}
        return {
            "apiVersion": self.group_version,
            "kind": self.kind,
            "metadata": {
                "name": f"{PREFIX}{name}",
                "namespace": namespace,
                "labels": {self.label: value, "app.kubernetes.io/managed-by": PROGRAM},
                # blockOwnerDeletion would require permission for the job's finalizers on OpenShift
                "ownerReferences": [owner],
            },
            "spec": spec,
        }

    def _record(self, existing: _Object) -> SeenObject:
        owners = [owner for owner in existing.metadata.owner_references or () if owner.controller]
        uid = next((owner.uid for owner in owners if owner.kind == "MPIJob" and owner.group == mpijob.GROUP), "")
        # the API server does not store an empty list
        filled = {name: value for name, value in (existing.spec or {}).items() if value}
        spec = {name: sorted(value) if name in self.unordered else value for name, value in filled.items()}
        content = [(existing.metadata.labels or {}).get(self.label), spec]
        return SeenObject(uid, hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest())


@dataclass(eq=False)
class OwnedObjects(ABC):
    """A controller for objects of one kind. Every replica maintains all objects."""

    name: ClassVar[str]
    kind: ClassVar[OwnedKind]
    api: PacedClient
    view: LiveView
    watch: Watch[ByNamespace, SeenObject]
    policies: Callable[[], PolicySet]
    log: Any

    def __post_init__(self) -> None:
        self.reconciler: Reconciler[ByNamespace] = Reconciler(self.name, self._look, log=self.log)
        self._clock = asyncio.get_running_loop().time
        self._begun = False
        self._taken_since: dict[ByNamespace, float] = {}
        self._rewritten: Restraint[ByNamespace] = Restraint()
        self.view.on_change(MPI_JOBS, lambda key, *_: self._add(key))
        self.view.on_change(NAMESPACES, self._namespace_changed)
        self.watch.store.on_change(lambda key, *_: self._add((key[0], key[1].removeprefix(PREFIX))))

    async def run(self) -> None:
        await self.view.settled()
        await self.watch.settled()
        self._begun = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reconciler.run())
            while True:
                self.resync()
                await asyncio.sleep(RESYNC)

    def resync(self) -> None:
        self._look_at(self.view.all(MPI_JOBS))

    @abstractmethod
    async def _reconcile(self, key: ByNamespace, job: MPIJobRecord, document: PolicyDocument) -> float | None:
        """Check one job with the policy of its namespace. Returns the seconds until the next check, or None."""

    async def _look(self, key: ByNamespace) -> float | None:
        job, namespace = self.view.get(MPI_JOBS, key), self.view.get(NAMESPACES, key[0])
        if job is Answer.ABSENT:
            self._forget(key)
            return None
        # Without the namespace's labels, the job could get the object of a different policy.
        if isinstance(job, Answer) or isinstance(namespace, Answer):
            return LATE_PAUSE if namespace is Answer.ABSENT else UNKNOWN_PAUSE
        return await self._reconcile(key, job, self.policies().for_namespace(namespace).document)

    def _look_at(self, jobs: Mapping[ByNamespace, MPIJobRecord] | Answer) -> None:
        for key in () if isinstance(jobs, Answer) else jobs:
            self._add(key)

    def _add(self, key: ByNamespace, after: float = 0) -> None:
        if self._begun:
            self.reconciler.add(key, after)

    def _namespace_changed(self, name: str, old: Namespace | None, new: Namespace | None) -> None:
        if old is None or new is None or old.labels != new.labels:
            jobs = self.view.within(MPI_JOBS, name)
            for key in () if isinstance(jobs, Answer) else jobs:
                self._add(key)

    def _seen(self, key: ByNamespace) -> SeenObject | Answer:
        return self.watch.get((key[0], PREFIX + key[1]))

    def _forget(self, key: ByNamespace) -> None:
        self._taken_since.pop(key, None)
        self._rewritten.forget(key)

    async def _write(
        self, key: ByNamespace, body: KubernetesObject, desired: SeenObject, cached: SeenObject | Answer
    ) -> float | None:
        """Create or replace the object. Returns the seconds until the next attempt, or None if none is needed."""
        kind = self.kind
        collection = f"/apis/{kind.group_version}/namespaces/{in_path(key[0])}/{kind.plural}"
        name = body["metadata"]["name"]
        if not isinstance(cached, SeenObject):
            try:
                await self.api.request("POST", f"{collection}?fieldManager={PROGRAM}", body)
            except ApiError as error:
                if error.status == _NOT_FOUND:
                    return None  # the namespace is gone
                if error.status != _CONFLICT:
                    raise
            else:
                event = f"{kind.kind} created"
                self.log.info(event, namespace=key[0], job=key[1])
                self._taken_since.pop(key, None)
                return None
        path = f"{collection}/{in_path(name)}"
        stored = await get(self.api, path)
        if stored is None:
            return LATE_PAUSE
        existing = kind.record(stored)
        if existing.owner != desired.owner:
            waited = self._clock() - self._taken_since.setdefault(key, self._clock())
            if existing.owner and waited < PATIENCE:
                return max(LATE_PAUSE, waited)  # the garbage collector will delete an earlier job's object
            message = f"{kind.kind} {name} already exists and does not belong to this job: {kind.foreign}. Delete it."
            await self._tell(key, body, "Foreign", message)
            raise ClusterError(f"{kind.kind} {key[0]}/{name} does not belong to the job")
        if existing != desired:
            metadata = {**body["metadata"], "uid": stored["metadata"]["uid"]}
            target = f"{path}?fieldManager={PROGRAM}&force=true"
            await self.api.request("PATCH", target, {**body, "metadata": metadata})
            event = f"{kind.kind} written"
            self.log.info(event, namespace=key[0], job=key[1])
        self._taken_since.pop(key, None)
        return None

    async def _tell(self, key: ByNamespace, body: KubernetesObject, problem: str, message: str) -> None:
        """Write a Warning Event about the job: one for all replicas, at most one per hour."""
        owner, reason = body["metadata"]["ownerReferences"][0], f"{self.kind.kind}{problem}"
        about = {name: owner[name] for name in ("apiVersion", "kind", "name", "uid")}
        once = f"{owner['uid']}/{reason}"
        with suppress(ClusterError):
            await write_event(self.api, key[0], about, reason=reason, message=message, kind="Warning", key=once)


def in_path(name: Hashable) -> str:
    return quote(str(name), safe="")
