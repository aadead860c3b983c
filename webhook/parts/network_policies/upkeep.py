"""Maintains the NetworkPolicy of every job.

Each job is checked every few minutes, and after a change of the job, its NetworkPolicy, its namespace, a policy, or the
token of a ServiceAccount. Before a write the job is read from the API server, because the cached job may have been
deleted or replaced. If a user changes the NetworkPolicy, the change is overwritten, because the administrator decides
about NetworkPolicies.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from webhook.api import mpijob
from webhook.api.annotations import NETWORK_POLICY
from webhook.api.shape import ShapeError
from webhook.client.calls import ClusterError
from webhook.client.objects import KubernetesObject, get
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.service_accounts import SERVICE_ACCOUNTS, ServiceAccount
from webhook.cluster.view import Answer
from webhook.controllers.limits import MAX_CALLS_PER_SECOND
from webhook.controllers.owned_objects import OwnedObjects, SeenObject, in_path
from webhook.parts.network_policies import NAME, RULE
from webhook.parts.network_policies.job_policy import NETWORK_POLICY_KIND, is_filtered, network_policy
from webhook.policy.document import PolicyDocument
from webhook.rules.network_policy import Posture, Settings, posture

# The checks of all jobs are spread over the time in which the controller could make this number of API calls per job. A
# check makes fewer calls. Therefore the controller has time for new jobs in between.
CALLS_PER_JOB: Final = 3

NETWORK_POLICIES: Final = NETWORK_POLICY_KIND.watched()

_Basis = tuple[str, int, str, Settings]
"""The job's uid, generation and annotation, and the settings in its namespace."""


@dataclass(frozen=True, slots=True)
class _Expected:
    basis: _Basis
    policy: SeenObject | None
    """None if the job should have no NetworkPolicy."""

    def met_by(self, stored: SeenObject | Answer) -> bool:
        """Whether no write is needed. An unknown stored object is assumed to be unchanged."""
        return stored in {self.policy, Answer.UNKNOWN} if self.policy else not _owns(self.basis[0], stored)


@dataclass(eq=False)
class NetworkPolicies(OwnedObjects):
    """The controller."""

    name = NAME
    kind = NETWORK_POLICY_KIND
    uniform: Callable[[float, float], float] = random.uniform

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expected: dict[ByNamespace, _Expected] = {}
        self._in_place: dict[ByNamespace, SeenObject] = {}
        self.view.on_change(SERVICE_ACCOUNTS, self._account_changed)

    def _look_at(self, jobs: Mapping[ByNamespace, MPIJobRecord] | Answer) -> None:
        """Checks jobs without a NetworkPolicy at once. The checks of the other jobs are spread over time."""
        if isinstance(jobs, Answer):
            return
        span = CALLS_PER_JOB * len(jobs) / MAX_CALLS_PER_SECOND
        for key, job in jobs.items():
            self._add(key, self.uniform(0, span) if _owns(job.uid, self._seen(key)) else 0)

    def _account_changed(self, key: ByNamespace, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        if (old is None or old.token) == (new is None or new.token):
            return
        self._expected = {job: expected for job, expected in self._expected.items() if job[0] != key[0]}
        self._look_at(self.view.within(MPI_JOBS, key[0]))

    async def _reconcile(self, key: ByNamespace, job: MPIJobRecord, document: PolicyDocument) -> float | None:
        settings, stored = document.settings_of_rule(RULE), self._seen(key)
        assert isinstance(settings, Settings)  # noqa: S101 - for the type checker
        if posture(job.network_policy, settings) is Posture.NONE and not _owns(job.uid, stored):
            self._forget(key)
            return None
        basis = job.uid, job.generation, job.network_policy, settings
        expected = self._expected.get(key)
        if expected is None or expected.basis != basis or not expected.met_by(stored):
            return await self._ensure(key, settings)
        if isinstance(stored, SeenObject):
            self._in_place[key] = stored
        return None

    def _forget(self, key: ByNamespace) -> None:
        super()._forget(key)
        self._expected.pop(key, None)
        self._in_place.pop(key, None)

    async def _ensure(self, key: ByNamespace, settings: Settings) -> float | None:
        document = await get(self.api, f"{MPI_JOBS.path(MPI_JOBS.api_versions[0], in_path(key[0]))}/{in_path(key[1])}")
        if document is None or document["metadata"].get("deletionTimestamp"):
            return None
        stored = self._seen(key)  # a different replica may have created it during the call
        document.pop("status", None)
        try:
            job = mpijob.decode(msgspec.json.encode(document))
        except ShapeError as error:
            raise ClusterError(f"MPIJob {key[0]}/{key[1]} cannot be read: {error}") from None
        requested = job.annotations.get(NETWORK_POLICY, "")
        chosen = posture(requested, settings) if is_filtered(job) else Posture.NONE
        generation = int(document["metadata"].get("generation") or 0)
        basis = job.metadata.uid, generation, requested, settings
        if chosen is Posture.NONE and not _owns(job.metadata.uid, stored):
            self._expected[key] = _Expected(basis, None)
            return None
        body = network_policy(job, chosen, settings, self.view)
        expected = NETWORK_POLICY_KIND.record(body)
        later = None if expected == stored else await self._put(key, body, expected, stored)
        if later is None:
            self._expected[key] = _Expected(basis, expected)
        if expected == stored:
            self._in_place[key] = expected
        return later

    async def _put(
        self, key: ByNamespace, body: KubernetesObject, expected: SeenObject, stored: SeenObject | Answer
    ) -> float | None:
        existed = key in self._in_place or isinstance(stored, SeenObject)
        if existed and (wait := self._rewritten.wait(key, self._clock())):
            return wait
        later = await self._write(key, body, expected, stored)
        if later is not None:
            return later
        if existed:
            self._rewritten.note(key, self._clock())
        if self._in_place.get(key) == expected:
            del self._in_place[key]
            message = f"NetworkPolicy {body['metadata']['name']} was changed or removed, and has been restored"
            await self._tell(key, body, "PutBack", message)
        return None


def _owns(uid: str, seen: SeenObject | Answer) -> bool:
    return isinstance(seen, SeenObject) and seen.owner == uid
