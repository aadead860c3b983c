"""No over-commit: verdicts on quotas that hold for all replicas of the service at once.

A cache is always a little late, so two replicas could both hand out the last GPU. Where a quota counts, the job is
therefore judged again with the quotas of that moment. What an admitted job will take is written into the namespace's
reservations (`webhook.cluster.resources.reservations`), on condition that nobody else has written there since. A
reservation counts for the few seconds until every replica sees the job itself, and then expires. All times are by the
API server's clock: those of nodes differ.

A watch may have stalled without anybody noticing. So a reservation stays for longer than a watch may be silent here:
if nothing was heard of jobs for that long, the API server is asked how many there are, and for all of them where the
cache has another number.

Jobs that arrive together are judged one after the other and written in one go.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from webhook.admission.decision import Decision
from webhook.admission.pipelines import DeadlineExceeded
from webhook.client.calls import Client, ClusterError
from webhook.client.connection import Connection
from webhook.client.live_view import LiveView
from webhook.cluster.overlay import Overlay
from webhook.cluster.owned import Owned
from webhook.cluster.resource import ByNamespace, Resource
from webhook.cluster.resources import reservations
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS, LedgerEntry, Reservations
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import Answer, ClusterView, Unknown
from webhook.companions.reservations.leases import LedgerApi, lease_name

# Seconds.
LIFETIME: Final = 30.0  # of a reservation: by then every replica has seen the job, or it was never stored
SEEN: Final = 5.0  # a job that this replica sees for so long needs no reservation here any more
KEPT: Final = 15.0  # for so long it is kept all the same, for replicas that do not see the job yet
SILENCE: Final = 10.0  # of the watch on jobs, beyond which it is not relied on
SWEEP: Final = 5.0
ATTEMPTS: Final = 8
# A new pod is in a quota's `used` before anybody can see the pod, so for a moment it counts twice. A job that is
# refused while others are being made is therefore judged up to REFUSALS times, with PAUSE seconds in between.
REFUSALS: Final = 5
PAUSE: Final = 0.2
LONGEST_DOUBT: Final = 0.6  # beyond this only as many as DOUBTS: quotas count pods late on a busy control plane
DOUBTS: Final = 4
TOGETHER: Final = 100  # jobs in one write

LedgerOutcome = str
"""reserved | not-reserved | full | conflict | late | unavailable: a metric label."""
OUTCOMES: Final[tuple[LedgerOutcome, ...]] = ("reserved", "not-reserved", "full", "conflict", "late", "unavailable")

Decide = Callable[[ClusterView], Decision]
"""Finds the verdict with another view. What it raises is raised for whoever asked."""


@dataclass(slots=True)
class _Asked:
    """A job that waits for its verdict."""

    decide: Decide
    writes: bool
    """Whether to reserve what it takes: not for a dry run."""
    since: float
    """When it was asked, by the loop's clock."""
    refusals: int = 0
    """How often it was refused so far."""
    answer: asyncio.Future[Decision] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class QuotaLedger:
    """Judges jobs in namespaces with quotas. `run` removes reservations that have expired.

    `namespace` is the service's own. `on_outcome` gets the outcome for each job, and each conflict.
    """

    def __init__(
        self,
        *,
        api: Client,
        connection: Connection,
        view: LiveView,
        namespace: str,
        log: Any,
        on_outcome: Callable[[LedgerOutcome], None],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._now = LedgerApi(api, connection, namespace, log=log)
        self._view = view
        self._namespace = namespace
        self._log = log
        self._on_outcome = on_outcome
        self._clock = clock or api.now
        self._waiting: dict[str, deque[_Asked]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, float] = {}  # uid -> when this replica saw the job first
        self._gone: dict[str, float] = {}  # uid -> when this replica saw it deleted
        self._moved: dict[str, float] = {}  # namespace -> when a pod of a job came or went there last
        view.on_change(MPI_JOBS, self._job_changed)
        view.on_change(PODS, self._pod_changed)

    async def verdict(self, namespace: str, *, decide: Decide, writes: bool, seconds: float) -> Decision:
        """The verdict by the quotas of this moment. What an admitted job takes is reserved if it `writes`.

        ClusterError when quotas or reservations cannot be used: then the verdict by the cache has to be enough.
        DeadlineExceeded after `seconds`: when so many jobs come at once, the cache would admit too many.
        """
        asked = _Asked(decide, writes, asyncio.get_running_loop().time())
        self._waiting.setdefault(namespace, deque()).append(asked)
        if namespace not in self._workers:
            self._workers[namespace] = asyncio.create_task(self._work(namespace), name=f"quota ledger {namespace}")
        try:
            async with asyncio.timeout(seconds):
                return await asked.answer
        except TimeoutError:
            self._on_outcome("late")
            raise DeadlineExceeded(f"the quotas of {namespace}") from None

    async def run(self) -> NoReturn:
        """Remove reservations that have expired, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP)
            try:
                self._forget()
                await self._sweep()
            except Exception as error:  # noqa: BLE001 - the next sweep must come
                self._log.warning("quota ledger not swept", error=type(error).__name__)

    async def close(self) -> None:
        """Stop working."""
        for task in list(self._workers.values()):
            task.cancel()
        await asyncio.gather(*self._workers.values(), return_exceptions=True)

    async def _work(self, namespace: str) -> None:
        """Judge the jobs that wait in `namespace`, in batches, until none is left."""
        waiting = self._waiting[namespace]
        try:
            while waiting:
                batch = [waiting.popleft() for _ in range(min(len(waiting), TOGETHER))]
                batch = [asked for asked in batch if not asked.answer.done()]
                try:
                    again = await self._settle(namespace, batch)
                    if again:
                        await asyncio.sleep(PAUSE)
                        waiting.extend(again)
                except Exception as error:  # noqa: BLE001 - it is raised for everybody who waits
                    self._log.warning("quota ledger not usable", namespace=namespace, reason=str(error)[:256])
                    for asked in batch:
                        self._on_outcome("unavailable" if isinstance(error, ClusterError) else "late")
                        _fail(asked, error)
        finally:
            del self._workers[namespace], self._waiting[namespace]

    async def _settle(self, namespace: str, batch: list[_Asked]) -> list[_Asked]:
        """Answer the jobs in `batch`; returns those that have to be judged again."""
        for _ in range(ATTEMPTS):
            # Pods first: one that is newer than the quotas would neither be in `used` nor count as still to come.
            pods = await self._pods(namespace, fresh=any(asked.refusals for asked in batch))
            jobs = await self._jobs(namespace)
            lease, quotas = await asyncio.gather(self._now.reservations(namespace), self._now.quotas(namespace))
            kept = {entry.reservation.name: entry for entry in self._kept(lease.entries)}
            entries = {entry.reservation.name: entry for entry in self._alive(kept.values())}
            new: dict[str, LedgerEntry] = {}
            decisions = []
            for asked in list(batch):
                try:
                    decision = asked.decide(self._overlay(namespace, pods, jobs, quotas, entries.values()))
                except Exception as error:  # noqa: BLE001 - it concerns this job alone
                    batch.remove(asked)
                    _fail(asked, error)
                    continue
                decisions.append(decision)
                if asked.writes and decision.reservation is not None and not decision.denied:
                    entry = LedgerEntry(decision.reservation, self._clock() + LIFETIME)
                    entries[decision.reservation.name] = new[decision.reservation.name] = entry
                await asyncio.sleep(0)  # so that other reviews go on
            left_out: list[str] = []
            if new:
                text, left_out = self._text(kept | new)
                if not await self._now.write(namespace, lease, text):
                    self._on_outcome("conflict")
                    continue
            moving = bool(entries) or self._clock() - self._moved.get(namespace, 0) < SEEN
            again = []
            for asked, decision in zip(batch, decisions, strict=True):
                asked.refusals += bool(decision.denied)
                doubt = asyncio.get_running_loop().time() - asked.since < LONGEST_DOUBT
                if decision.denied and moving and asked.refusals < (REFUSALS if doubt else DOUBTS):
                    again.append(asked)
                    continue
                full = decision.reservation is not None and decision.reservation.name in left_out
                self._on_outcome("not-reserved" if decision.denied else "full" if full else "reserved")
                if not asked.answer.done():
                    asked.answer.set_result(decision)
            return again
        raise DeadlineExceeded(f"the reservations of {namespace} change too fast")

    def _text(self, kept: dict[str, LedgerEntry]) -> tuple[str, list[str]]:
        """What is written, and which jobs there is no room for: what these take is not reserved."""
        text, left_out = reservations.encode(kept.values())
        if left_out:  # those that are seen make room
            text, left_out = reservations.encode(self._alive(kept.values()))
        if left_out:
            self._log.warning("reservations are full", left_out=len(left_out))
        return text, left_out

    def _overlay(
        self, namespace: str, pods: Any, jobs: Any, quotas: Mapping[ByNamespace, Any], entries: Iterable[LedgerEntry]
    ) -> ClusterView:
        reserved = Reservations(namespace, "", "", tuple(entries))
        known: dict[Resource[Any, Any], Any] = {
            PODS: pods,
            RESOURCE_QUOTAS: quotas,
            **({} if jobs is None else {MPI_JOBS: jobs}),
            RESERVATIONS: {(self._namespace, lease_name(namespace)): reserved},
        }
        return Overlay(self._view, namespace, known)

    async def _pods(self, namespace: str, *, fresh: bool) -> Mapping[ByNamespace, Owned] | Unknown:
        """The pods of jobs: as in the cache, or as they are now."""
        seen = self._view.within(PODS, namespace)
        if fresh or isinstance(seen, Answer):
            return await self._now.pods(namespace)
        return copy(seen)

    async def _jobs(self, namespace: str) -> Mapping[ByNamespace, MPIJobRecord] | None:
        """The jobs as they are now; None where the cache is as good."""
        known = self._view.all(MPI_JOBS)
        if isinstance(known, Answer) or self._view.silence(MPI_JOBS) < SILENCE:
            return None
        here = sum(key[0] == namespace for key in known)
        return None if await self._now.how_many_jobs(namespace) == here else await self._now.jobs(namespace)

    async def _sweep(self) -> None:
        """Delete the Leases in which every reservation has expired."""
        known = self._view.all(RESERVATIONS)
        for lease in () if isinstance(known, Answer) else list(known.values()):
            if self._kept(lease.entries) or lease.namespace in self._workers:
                continue
            try:
                await self._now.delete(lease)
            except ClusterError as error:
                self._log.warning("reservations are left behind", namespace=lease.namespace, reason=str(error))

    def _alive(self, entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
        """The entries that count here: those of jobs that this replica may not see yet."""
        return [entry for entry in self._kept(entries) if self._seen_for(entry) < SEEN]

    def _kept(self, entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
        """The entries of jobs that some replica may not see yet."""
        now = self._clock()
        return [
            entry
            for entry in entries
            if now < entry.expires <= now + 2 * LIFETIME  # a damaged one may end in a hundred years
            and entry.reservation.uid not in self._gone
            and self._seen_for(entry) < KEPT
        ]

    def _seen_for(self, entry: LedgerEntry) -> float:
        """For how many seconds this replica has seen the job, since it was reserved for."""
        now = self._clock()
        return now - max(self._seen.get(entry.reservation.uid, now), entry.expires - LIFETIME)

    def _job_changed(self, key: Hashable, old: MPIJobRecord | None, new: MPIJobRecord | None) -> None:
        now = self._clock()
        if new is not None:
            self._seen.setdefault(new.uid, now)
            if new.over:
                self._gone[new.uid] = now
        if old is not None and (new is None or new.uid != old.uid):
            self._gone[old.uid] = now

    def _pod_changed(self, key: ByNamespace, *_: object) -> None:
        self._moved[key[0]] = self._clock()

    def _forget(self) -> None:
        """Drop what is older than any reservation."""
        oldest = self._clock() - 3 * LIFETIME
        for times in (self._seen, self._gone, self._moved):
            for uid in [uid for uid, when in times.items() if when < oldest]:
                del times[uid]


def _fail(asked: _Asked, error: Exception) -> None:
    """Raise `error` for whoever waits."""
    if not asked.answer.done():
        asked.answer.set_exception(error)
