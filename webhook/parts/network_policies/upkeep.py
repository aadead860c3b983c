"""Creates and restores the NetworkPolicy of every job, from the moment that the job is stored.

A job is checked when it, its NetworkPolicy, its namespace or a policy changes, when a ServiceAccount there starts or
stops giving its pods a token, and every few minutes. An object that is correct in the caches costs no call. Before
anything is written the job is read: it may be in deletion, or another job with the same name.

A missing object is created, never applied: a server-side apply would adopt an object of that name that another client
has made. Only an object that the job controls is applied over, with its uid, so that the API server rejects the apply
if another object has taken its place. The content is the administrator's decision, so changes by others are reverted,
by force. The job is the owner: the garbage collector deletes the object, and no right to delete is needed.
"""

import asyncio
import hashlib
import random
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from webhook import PROGRAM
from webhook.api import mpijob
from webhook.api.annotations import NETWORK_POLICY
from webhook.api.metadata import OwnerReference
from webhook.api.shape import ShapeError
from webhook.client.calls import ApiError, ClusterError
from webhook.client.live_view import LiveView
from webhook.client.objects import KubernetesObject, get, write_event
from webhook.client.store import Kind, by_namespace
from webhook.client.watch import Watch
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.service_accounts import SERVICE_ACCOUNTS, ServiceAccount
from webhook.cluster.view import Answer
from webhook.companions.limits import MAX_CALLS_PER_SECOND
from webhook.companions.reconciler import PacedClient, Reconciler, Restraint
from webhook.parts.network_policies import NAME, RULE
from webhook.parts.network_policies.wanted import LABEL, PREFIX, is_filtered, network_policy
from webhook.policy.in_force import PolicySet
from webhook.rules.network_policy import Posture, Settings, posture

PATH: Final = "/apis/networking.k8s.io/v1/networkpolicies"
# For each job when all are checked. One check takes fewer, so some calls are left for new jobs.
CALLS: Final = 3
# Seconds.
RESYNC: Final = 600.0
UNKNOWN_PAUSE: Final = 30.0
LATE_PAUSE: Final = 1.0  # a cache, or the garbage collector, is late
PATIENCE: Final = 60.0  # with the garbage collector: any user can write an owner that it never collects
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404


class _Metadata(msgspec.Struct, rename="camel"):
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata
    spec: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SeenPolicy:
    """An existing NetworkPolicy."""

    owner: str
    """The uid of the MPIJob that controls it; empty if none does."""
    content: str
    """A hash of its spec and its posture."""


def record(found: Mapping[str, Any]) -> SeenPolicy:
    """The relevant parts of an object."""
    return _record(msgspec.convert(found, _Object))


def _record(found: _Object) -> SeenPolicy:
    owners = [owner for owner in found.metadata.owner_references or () if owner.controller]
    uid = next((owner.uid for owner in owners if owner.kind == "MPIJob" and owner.group == mpijob.GROUP), "")
    # The API server drops empty lists, and the order of types has no meaning.
    spec = {name: value for name, value in (found.spec or {}).items() if value}
    spec["policyTypes"] = sorted(spec.get("policyTypes") or ())
    content = [(found.metadata.labels or {}).get(LABEL), spec]
    return SeenPolicy(uid, hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest())


_decoder = msgspec.json.Decoder(_Object)

NETWORK_POLICIES: Final[Kind[ByNamespace, SeenPolicy]] = Kind(
    "networkpolicies",
    PATH,
    key=by_namespace,
    project=lambda data: _record(_decoder.decode(data)),
    label_selector=LABEL,
)

_Basis = tuple[str, int, str, Settings]
"""The job's uid, generation and annotation, and its namespace's settings."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The policy that a job should have, and its inputs."""

    basis: _Basis
    policy: SeenPolicy | None
    """None: the job should have no object."""

    def met_by(self, seen: SeenPolicy | Answer) -> bool:
        """True if nothing must be written. An object that cannot be read was written once, and counts as unchanged."""
        return seen in {self.policy, Answer.UNKNOWN} if self.policy else not _owns(self.basis[0], seen)


@dataclass(eq=False)
class NetworkPolicies:
    """The controller. Every replica does all of it; `watch` has the objects of all replicas."""

    api: PacedClient
    view: LiveView
    watch: Watch[ByNamespace, SeenPolicy]
    policies: Callable[[], PolicySet]
    log: Any
    uniform: Callable[[float, float], float] = random.uniform

    def __post_init__(self) -> None:
        self.reconciler: Reconciler[ByNamespace] = Reconciler(NAME, self._look, log=self.log)
        self._clock = asyncio.get_running_loop().time
        self._begun = False
        self._wanted: dict[ByNamespace, _Wanted] = {}
        self._in_place: dict[ByNamespace, SeenPolicy] = {}
        self._put_back: Restraint[ByNamespace] = Restraint()
        self._taken_since: dict[ByNamespace, float] = {}
        self.view.on_change(MPI_JOBS, lambda key, *_: self._add(key))
        self.view.on_change(NAMESPACES, self._namespace_changed)
        self.view.on_change(SERVICE_ACCOUNTS, self._account_changed)
        self.watch.store.on_change(lambda key, *_: self._add((key[0], key[1].removeprefix(PREFIX))))

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self.view.settled()
        await self.watch.settled()
        self._begun = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reconciler.run())
            while True:
                self.resync()
                await asyncio.sleep(RESYNC)

    def resync(self) -> None:
        """Check every job."""
        self._look_at(self.view.all(MPI_JOBS))

    def _look_at(self, jobs: Mapping[ByNamespace, MPIJobRecord] | Answer) -> None:
        """Check jobs without a NetworkPolicy first, and the others spread over time."""
        if isinstance(jobs, Answer):
            return
        span = CALLS * len(jobs) / MAX_CALLS_PER_SECOND
        for key, job in jobs.items():
            self._add(key, self.uniform(0, span) if _owns(job.uid, self._seen(key)) else 0)

    def _add(self, key: ByNamespace, after: float = 0) -> None:
        if self._begun:
            self.reconciler.add(key, after)

    def _namespace_changed(self, name: str, old: Namespace | None, new: Namespace | None) -> None:
        if old is not None and new is not None and old.labels == new.labels:
            return
        jobs = self.view.within(MPI_JOBS, name)
        for key in () if isinstance(jobs, Answer) else jobs:
            self._add(key)

    def _account_changed(self, key: ByNamespace, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        """Its pods start or stop getting a token. Only the jobs name their account, so all jobs of the namespace are
        checked.
        """
        if (old is None or old.token) == (new is None or new.token):
            return
        for each in [each for each in self._wanted if each[0] == key[0]]:
            del self._wanted[each]
        self._look_at(self.view.within(MPI_JOBS, key[0]))

    def _seen(self, key: ByNamespace) -> SeenPolicy | Answer:
        return self.watch.get((key[0], PREFIX + key[1]))

    def _settings(self, namespace: Namespace) -> Settings:
        settings = self.policies().for_namespace(namespace).document.settings_of_rule(RULE)
        assert isinstance(settings, Settings)  # noqa: S101 - for the type checker
        return settings

    async def _look(self, key: ByNamespace) -> float | None:
        job, namespace, seen = self.view.get(MPI_JOBS, key), self.view.get(NAMESPACES, key[0]), self._seen(key)
        if job is Answer.ABSENT:
            self._forget(key)
            return None
        # Without the labels of the namespace the job might get a narrower policy than it needs.
        if isinstance(job, Answer) or isinstance(namespace, Answer):
            return LATE_PAUSE if namespace is Answer.ABSENT else UNKNOWN_PAUSE
        settings = self._settings(namespace)
        if posture(job.network_policy, settings) is Posture.NONE and not _owns(job.uid, seen):
            self._forget(key)
            return None
        basis = job.uid, job.generation, job.network_policy, settings
        wanted = self._wanted.get(key)
        if wanted is None or wanted.basis != basis or not wanted.met_by(seen):
            return await self._bring_about(key, settings)
        if isinstance(seen, SeenPolicy):
            self._in_place[key] = seen
        return None

    def _forget(self, key: ByNamespace) -> None:
        self._wanted.pop(key, None)
        self._in_place.pop(key, None)
        self._put_back.forget(key)
        self._taken_since.pop(key, None)

    async def _bring_about(self, key: ByNamespace, settings: Settings) -> float | None:
        """Read the job, and write what is missing."""
        found = await get(self.api, f"{MPI_JOBS.path(MPI_JOBS.api_versions[0], _in_path(key[0]))}/{_in_path(key[1])}")
        if found is None or found["metadata"].get("deletionTimestamp"):
            return None  # the cache is late, or the job is in deletion
        seen = self._seen(key)  # another replica may have written it in the meantime
        found.pop("status", None)
        try:
            job = mpijob.decode(msgspec.json.encode(found))
        except ShapeError as error:
            raise ClusterError(f"MPIJob {key[0]}/{key[1]} cannot be read: {error}") from None
        asked = job.annotations.get(NETWORK_POLICY, "")
        chosen = posture(asked, settings) if is_filtered(job) else Posture.NONE
        generation = int(found["metadata"].get("generation") or 0)
        basis = job.metadata.uid, generation, asked, settings
        if chosen is Posture.NONE and not _owns(job.metadata.uid, seen):
            self._wanted[key] = _Wanted(basis, None)
            return None
        body = network_policy(job, chosen, settings, self.view)
        wanted = record(body)
        later = None if wanted == seen else await self._put(key, body, wanted, seen)
        if later is None:
            self._wanted[key] = _Wanted(basis, wanted)
        if wanted == seen:
            self._in_place[key] = wanted
        return later

    async def _put(
        self, key: ByNamespace, body: KubernetesObject, wanted: SeenPolicy, seen: SeenPolicy | Answer
    ) -> float | None:
        again = key in self._in_place or isinstance(seen, SeenPolicy)
        if again and (wait := self._put_back.wait(key, self._clock())):
            return wait
        written = await self._write(key, body, wanted, seen)
        if written is not None:
            return written
        self._taken_since.pop(key, None)
        if again:
            self._put_back.note(key, self._clock())
        if self._in_place.get(key) == wanted:
            del self._in_place[key]
            message = f"NetworkPolicy {body['metadata']['name']} was changed or removed, and is put back"
            await self._tell(key, body, "NetworkPolicyPutBack", message)
        return None

    async def _write(
        self, key: ByNamespace, body: KubernetesObject, wanted: SeenPolicy, seen: SeenPolicy | Answer
    ) -> float | None:
        """Create or replace the object. Returns the seconds until the next attempt if it cannot be written now."""
        collection = f"{PATH.removesuffix('/networkpolicies')}/namespaces/{_in_path(key[0])}/networkpolicies"
        name = body["metadata"]["name"]
        if not isinstance(seen, SeenPolicy):
            try:
                await self.api.request("POST", f"{collection}?fieldManager={PROGRAM}", body)
            except ApiError as error:
                if error.status == _NOT_FOUND:
                    return None  # the namespace is deleted
                if error.status != _CONFLICT:
                    raise
            else:
                self.log.info("NetworkPolicy created", namespace=key[0], job=key[1])
                return None
        path = f"{collection}/{_in_path(name)}"
        there = await get(self.api, path)
        if there is None:
            return LATE_PAUSE
        theirs = record(there)
        if theirs.owner != wanted.owner:
            waited = self._clock() - self._taken_since.setdefault(key, self._clock())
            if theirs.owner and waited < PATIENCE:
                return max(LATE_PAUSE, waited)  # it belongs to an earlier job, and the garbage collector will delete it
            message = f"NetworkPolicy {name} is there already and not of this job: the job is not isolated. Delete it."
            await self._tell(key, body, "NetworkPolicyForeign", message)
            raise ClusterError(f"NetworkPolicy {key[0]}/{name} is not of the job")
        if theirs != wanted:
            metadata = {**body["metadata"], "uid": there["metadata"]["uid"]}
            target = f"{path}?fieldManager={PROGRAM}&force=true"
            await self.api.request("PATCH", target, {**body, "metadata": metadata})
            self.log.info("NetworkPolicy written", namespace=key[0], job=key[1])
        return None

    async def _tell(self, key: ByNamespace, body: KubernetesObject, reason: str, message: str) -> None:
        """Write a Warning Event about the job: one for all replicas, and at most one an hour."""
        owner = body["metadata"]["ownerReferences"][0]
        about = {name: owner[name] for name in ("apiVersion", "kind", "name", "uid")}
        once = f"{owner['uid']}/{reason}"
        with suppress(ClusterError):
            await write_event(self.api, key[0], about, reason=reason, message=message, kind="Warning", key=once)


def _owns(uid: str, seen: SeenPolicy | Answer) -> bool:
    return isinstance(seen, SeenPolicy) and seen.owner == uid


def _in_path(name: Hashable) -> str:
    return quote(str(name), safe="")
