"""What this replica sees of jobs and pods, and since when: whose reservations it need not count any more."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from math import inf
from typing import Final

from webhook.client.live_view import LiveView
from webhook.cluster.owned import Owned
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import LedgerEntry
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS, ResourceQuota
from webhook.cluster.train_jobs import TRAIN_JOB_PODS, TRAIN_JOBS, TrainJobPod, TrainJobRecord
from webhook.cluster.view import Answer, Unknown
from webhook.companions.reservations.leases import LedgerApi

# Seconds.
LIFETIME: Final = 30.0  # of a reservation: by then every replica has seen the job, or it was never stored
UNJUDGED: Final = 12.0  # of one that is announced: more than a review may take, and by how much clocks may differ
CLOCKS: Final = 4.0  # of two replicas: the API server says the time in whole seconds, and one second is no difference
SEEN: Final = 15.0  # after so long, 8 of which a verdict may take, this replica sees an update of a job that it knows
MOVING: Final = 5.0  # for so long after a pod came or went others are likely to
KEPT: Final = 20.0  # for so long it is kept all the same, for replicas that do not see the job yet
SILENCE: Final = 10.0  # of the watch on jobs, beyond which it is not relied on

MOST_COMPARED: Final = 2000  # jobs of a namespace


class Sight:
    """The jobs and pods of a namespace as they are now, and for how long `view` has shown them."""

    def __init__(self, view: LiveView, now: LedgerApi, clock: Callable[[], float]) -> None:
        self._view = view
        self._now = now
        self._clock = clock
        self._seen: dict[str, float] = {}  # uid -> when this replica saw the job first
        self._gone: dict[str, float] = {}  # uid -> when this replica saw it deleted
        self._moved: dict[str, float] = {}  # namespace -> when a pod came or went there last
        self._compared: dict[str, float] = {}  # namespace -> when the cache had all jobs there last, if that was asked
        view.on_change(MPI_JOBS, self._job_changed)
        view.on_change(TRAIN_JOBS, self._train_job_changed)
        view.on_change(PODS, self._moves)
        view.on_change(TRAIN_JOB_PODS, self._moves)
        view.on_change(RESOURCE_QUOTAS, self._moves)

    async def pods(self, namespace: str) -> Mapping[ByNamespace, Owned] | Unknown:
        """The pods of jobs, as in the cache where that knows them: a list of thousands takes long."""
        seen = self._view.within(PODS, namespace)
        return await self._now.pods(namespace) if isinstance(seen, Answer) else copy(seen)

    def train_pods(self, namespace: str) -> Mapping[ByNamespace, TrainJobPod] | Unknown:
        """The pods of TrainJobs, as they are in the cache now."""
        return copy(self._view.within(TRAIN_JOB_PODS, namespace))

    async def jobs(self, namespace: str) -> Mapping[ByNamespace, MPIJobRecord] | None:
        """The jobs as they are now; None where the cache is as good."""
        known, now = self._view.all(MPI_JOBS), asyncio.get_running_loop().time()
        if isinstance(known, Answer) or min(self._view.silence(MPI_JOBS), self._since_compared(namespace)) < SILENCE:
            return None
        count = await self._now.how_many_jobs(namespace)
        if count == sum(key[0] == namespace for key in known) and count > MOST_COMPARED:
            return None
        jobs = await self._now.jobs(namespace)
        if jobs != self._view.within(MPI_JOBS, namespace):
            return jobs
        self._compared[namespace] = now
        return None

    def _since_compared(self, namespace: str) -> float:
        return asyncio.get_running_loop().time() - self._compared.get(namespace, -inf)

    def moving(self, namespace: str, quotas: Mapping[ByNamespace, ResourceQuota]) -> bool:
        """Whether a pod came or went there just now, or is about to be seen: the `quotas` of now count it before."""
        recently = self._clock() - self._moved.get(namespace, -inf) < MOVING
        return recently or self._view.within(RESOURCE_QUOTAS, namespace) != quotas

    def counting(self, entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
        """Of what is kept the entries that count here: of jobs, or changes, that this replica may not see yet."""
        found = list(entries)
        for entry in found:
            if entry.instead_of and entry.reservation.uid in self._seen:
                self._gone.update(dict.fromkeys(entry.instead_of, self._clock()))
        return [entry for entry in found if entry.reservation.uid not in self._gone and self._unseen(entry)]

    def _unseen(self, entry: LedgerEntry) -> bool:
        if entry.reservation.new:
            return entry.reservation.uid not in self._seen
        return self._seen_for(entry) < SEEN

    def kept(self, entries: Iterable[LedgerEntry], *, at: float) -> list[LedgerEntry]:
        """The entries of jobs that some replica may not see yet, as they were read after `at`.

        What had not ended by then may have been confirmed by the replica that announced it until it was read.
        """
        return [
            entry
            for entry in entries
            if at < entry.expires <= at + 2 * LIFETIME  # a damaged one may end in a hundred years
            and entry.reservation.uid not in self._gone
            and self._seen_for(entry) < KEPT
        ]

    def _seen_for(self, entry: LedgerEntry) -> float:
        """For how many seconds this replica has seen the job, since it was reserved for."""
        now, lifetime = self._clock(), UNJUDGED if entry.unjudged else LIFETIME
        return now - max(self._seen.get(entry.reservation.uid, now), entry.expires - lifetime)

    def _job_changed(self, key: Hashable, old: MPIJobRecord | None, new: MPIJobRecord | None) -> None:
        now = self._clock()
        if new is not None:
            self._seen.setdefault(new.uid, now)
            if new.over:
                self._gone[new.uid] = now
        if old is not None and (new is None or new.uid != old.uid):
            self._gone[old.uid] = now

    def _train_job_changed(self, key: Hashable, old: TrainJobRecord | None, new: TrainJobRecord | None) -> None:
        """That a TrainJob is seen says nothing of what it takes: what is reserved counts until it is over, or gone."""
        if new is not None and new.over:
            self._gone[new.uid] = self._clock()
        if old is not None and (new is None or new.uid != old.uid):
            self._gone[old.uid] = self._clock()

    def _moves(self, key: ByNamespace, *_: object) -> None:
        self._moved[key[0]] = self._clock()

    def forget(self) -> None:
        """Drop what is older than any reservation."""
        ages = ((namespace, self._since_compared(namespace)) for namespace in list(self._compared))
        for namespace in [namespace for namespace, age in ages if age > SILENCE]:
            del self._compared[namespace]
        oldest = self._clock() - 3 * LIFETIME
        for times in (self._seen, self._gone, self._moved):
            for uid in [uid for uid, when in times.items() if when < oldest]:
                del times[uid]
