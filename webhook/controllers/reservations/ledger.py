"""Quota verdicts shared by all replicas, so that quotas are not over-committed.

Caches lag, so two replicas could both grant the last GPU. A job that a quota counts is therefore judged again with the
current quotas and the reservations of all replicas. Before the reply, the use of an admitted job is written into the
namespace's Lease (`webhook.cluster.resources.reservations`).

Waiting jobs are judged in rounds: read, judge, write, reply. If another replica has written since the read, the API
server answers 409, and the next round judges the jobs again. The pauses between rounds are random, so that other
replicas can write.

A reservation is valid until the replicas see the job, at most for `LIFETIME_SECONDS` by the API server's clock.

A quota's `used` includes a new pod before a list contains the pod. The pod is then counted twice: in `used`, and as a
pod that does not exist yet. While pods change, a rejected job is therefore judged again with a newer list of pods. If
the job fits with this list, the next round judges it from the start.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from random import uniform
from typing import Any, Final, NoReturn
from urllib.parse import quote

import msgspec

from webhook.admission.decision import Decision
from webhook.admission.pipelines import DeadlineExceeded
from webhook.client import wire
from webhook.client.calls import ApiError, Client, ClusterError
from webhook.client.connection import Connection
from webhook.client.limits import OBJECTS_PER_PAGE
from webhook.client.live_view import LiveView
from webhook.client.objects import get
from webhook.client.paging import pages, slices
from webhook.client.wire import WatchFault
from webhook.cluster.contents import Group
from webhook.cluster.resource import ByNamespace, Resource, T
from webhook.cluster.resources import reservations
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS, Lease, LedgerEntry, Reservations
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import Answer, ClusterView, Overlay
from webhook.controllers.reservations import limits
from webhook.kit.context import Context
from webhook.predict import other_jobs
from webhook.predict.other_jobs import JobRecord
from webhook.predict.quota import quick_fit
from webhook.predict.quota.assessment import namespace_quotas


class LedgerApi:
    """Reads and writes Leases in `own_namespace`, and lists the objects of a namespace. Calls raise ClusterError."""

    def __init__(self, api: Client, connection: Connection, own_namespace: str) -> None:
        self._api = api
        self._connection = connection
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{quote(own_namespace, safe='')}/leases"
        self.now = api.now

    async def reservations(self, namespace: str) -> Reservations:
        name = f"quota-{namespace}"
        lease = await get(self._api, f"{self._leases}/{quote(name, safe='')}")
        if lease is None:
            return Reservations(namespace, name, "", ())
        return reservations.record(msgspec.convert(lease, Lease))

    async def write(self, lease: Reservations, entries: Iterable[LedgerEntry]) -> list[str]:
        """Write the entries into the Lease. Returns the names of jobs that did not fit.

        ApiError 409 if the Lease was written or created since it was read.
        """
        body, left_out = reservations.manifest(lease, entries)
        method, path = ("PUT", f"/{quote(lease.name, safe='')}") if lease.version else ("POST", "")
        await self._api.request(method, self._leases + path, body)
        return left_out

    async def delete(self, lease: Reservations) -> None:
        """ApiError 404 or 409 if the Lease was removed or written since it was read."""
        options = {"preconditions": {"resourceVersion": lease.version}}
        await self._api.request("DELETE", f"{self._leases}/{quote(lease.name, safe='')}", options)

    async def records(self, resource: Resource[ByNamespace, T], namespace: str) -> Group[ByNamespace, T]:
        """The current objects. Reviews can run between the decoding of two objects."""
        fetch = partial(self._connection.list_page, metadata_only=resource.metadata_only)
        path = resource.path(resource.api_versions[0], quote(namespace, safe=""))
        records: Group[ByNamespace, T] = Group()
        try:
            async for page in pages(fetch, path, limit=OBJECTS_PER_PAGE, labelSelector=resource.label_selector):
                for items in slices(page.items or ()):
                    for data in items:
                        record = resource.project(data)
                        if record is not None and (resource.group is None or resource.group(record) is not None):
                            records.put((namespace, wire.decode(wire.objects, data).metadata.name), record)
                    await asyncio.sleep(0)
        except (WatchFault, msgspec.DecodeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ClusterError(f"cannot list {resource.plural}: {type(error).__name__} {error}") from None
        return records


OUTCOMES: Final = ("reserved", "not-reserved", "full", "late", "unavailable")
"""The possible outcomes for a job: values of a metric label."""
Decide = Callable[[ClusterView], Decision]
"""Judges one job. Its exceptions are raised in the job's review."""
Objects = dict[Resource[Any, Any], Any]
"""Objects of the namespace that replace cached objects."""


@dataclass(slots=True, eq=False)
class WaitingJob:
    """A job that waits for its verdict."""

    decide: Decide
    by_cache: Decision
    cached_limits: quick_fit.Limits
    writes: bool
    """False for a dry run: its use is not reserved."""
    rejections: int = 0
    """Rejections while pods changed."""
    answer: asyncio.Future[Decision] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def certain(self, room: quick_fit.Room) -> bool:
        """Whether the job is new and certainly fits. The verdict by the cache is then final."""
        reserved = None if self.by_cache.denied else self.by_cache.reservation
        return reserved is not None and reserved.new and self.cached_limits == room.limits and room.holds(reserved)

    def judged(self, view: ClusterView) -> Decision | Exception:
        try:
            return self.decide(view)
        except Exception as error:  # noqa: BLE001 - the error concerns only this job
            return error


class CurrentEntries:
    """Selects the valid reservations.

    A reservation is invalid if it has expired, or if its job has ended, was deleted, or was submitted again and stored.
    `clock` is the API server's clock.
    """

    def __init__(self, view: LiveView, clock: Callable[[], float]) -> None:
        self._view = view
        self._clock = clock
        self._ended: dict[str, float] = {}  # by uid: when the job ended or was deleted
        view.on_change(MPI_JOBS, self._job_changed)
        for other in other_jobs.all_kinds():
            view.on_change(other.jobs, self._job_changed)

    def of(self, lease: Reservations) -> list[LedgerEntry]:
        """The valid entries of the Lease. An entry that expires more than two lifetimes from now is invalid too."""
        now, current, stored_names = self._clock(), list[LedgerEntry](), set[str]()
        for entry in reversed(lease.entries):
            reserved = entry.reservation
            # If a replica dies before its reply, the client sends the job again, so two reservations have this name.
            # Only one of the two jobs can be stored.
            replaced = reserved.new and reserved.name in stored_names
            if replaced or reserved.uid in self._ended or not now < entry.expires <= now + 2 * limits.LIFETIME_SECONDS:
                continue
            current.append(entry)
            job = self._view.get(MPI_JOBS, (lease.namespace, reserved.name))
            if reserved.new and isinstance(job, MPIJobRecord) and job.uid == reserved.uid:
                stored_names.add(reserved.name)
        return current[::-1]

    def forget(self) -> None:
        oldest = self._clock() - 3 * limits.LIFETIME_SECONDS
        self._ended = {uid: ended for uid, ended in self._ended.items() if ended > oldest}

    def _job_changed(self, _: Hashable, old: JobRecord | None, new: JobRecord | None) -> None:
        for job in (old, new):
            if job is not None and (new is None or job.over or job.uid != new.uid):
                self._ended[job.uid] = self._clock()


class QuotaLedger:
    """Judges jobs in namespaces with quotas. `on_outcome` gets the outcome for each job."""

    def __init__(self, api: LedgerApi, view: LiveView, *, log: Any, on_outcome: Callable[[str], None]) -> None:
        self._api = api
        self._view = view
        self._log = log
        self._on_outcome = on_outcome
        self._current = CurrentEntries(view, api.now)
        self._waiting: dict[str, deque[WaitingJob]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}

    async def verdict(
        self, namespace: str, *, decide: Decide, first: Decision, writes: bool, seconds: float
    ) -> Decision:
        """The verdict with the current quotas. If `writes`, the use of an admitted job is reserved.

        `first` is the verdict by the cache. ClusterError if quotas or reservations cannot be read or written. The
        caller then judges by the cache. DeadlineExceeded after `seconds`. The caller must not use the cache then: if
        many jobs arrive at once, verdicts by the cache would admit too many.
        """
        quotas = namespace_quotas(Context(namespace=namespace, view=self._view))
        job = WaitingJob(decide, first, quick_fit.limits(quotas), writes)
        self._waiting.setdefault(namespace, deque()).append(job)
        if namespace not in self._workers:
            self._workers[namespace] = asyncio.create_task(self._work(namespace), name=f"quota ledger {namespace}")
        try:
            async with asyncio.timeout(seconds):
                return await job.answer
        except TimeoutError:
            self._on_outcome("late")
            raise DeadlineExceeded(f"the quotas of {namespace}") from None

    async def run(self) -> NoReturn:
        """Remove Leases without a valid reservation, until cancelled."""
        while True:
            await asyncio.sleep(limits.SWEEP_SECONDS)
            self._current.forget()
            leases = self._view.all(RESERVATIONS)
            for lease in () if isinstance(leases, Answer) else list(leases.values()):
                if not self._current.of(lease):
                    with suppress(ClusterError):  # the next sweep retries
                        await self._api.delete(lease)

    async def close(self) -> None:
        for worker in self._workers.values():
            worker.cancel()
        await asyncio.gather(*self._workers.values(), return_exceptions=True)

    async def _work(self, namespace: str) -> None:
        waiting = self._waiting[namespace]
        while waiting:
            batch = [waiting.popleft() for _ in range(min(len(waiting), limits.MAX_JOBS_PER_WRITE))]
            try:
                await self._round(namespace, batch)
            except Exception as error:  # noqa: BLE001 - raised in the review of every job in the batch
                if not (isinstance(error, ApiError) and error.status == 409):
                    self._log.warning("quota ledger not usable", namespace=namespace, reason=str(error)[:256])
                    for job in batch:
                        self._answer(job, error)
            waiting.extendleft(job for job in reversed(batch) if not job.answer.done())
            await asyncio.sleep(uniform(0, limits.MAX_PAUSE_SECONDS))  # noqa: S311 - a random pause, not a secret
        del self._workers[namespace], self._waiting[namespace]

    async def _round(self, namespace: str, batch: list[WaitingJob]) -> None:
        """Judge, reserve and reply; ApiError 409 without replies if another replica has written."""
        caches = await self._read(namespace)
        lease = await self._api.reservations(namespace)
        entries = (before := self._current.of(lease)).copy()
        view = Overlay(self._view, namespace, {**caches, RESERVATIONS: {("", ""): replace(lease, entries=entries)}})
        decisions = await self._judge(batch, entries, view, quick_fit.Room(Context(namespace=namespace, view=view)))
        left_out = await self._api.write(lease, entries) if entries != before else []
        quiet = min(self._view.silence(PODS), self._view.silence(RESOURCE_QUOTAS)) > limits.PODS_MOVE_SECONDS
        settled = quiet and not before and caches[RESOURCE_QUOTAS] == self._view.within(RESOURCE_QUOTAS, namespace)
        for job, decision in decisions.items():
            if settled or isinstance(decision, Exception) or not decision.denied:
                self._answer(job, decision, left_out)
        if rejected := [job for job in decisions if not job.answer.done()]:
            await self._judge_again(namespace, rejected, view)

    async def _read(self, namespace: str) -> Objects:
        """The objects for a round.

        The pods must not be newer than the quotas: a newer pod would neither be in `used`, nor count as a pod that does
        not exist yet.
        """
        caches = self._other_pods(namespace)
        caches[PODS] = copy(self._view.within(PODS, namespace))
        caches[RESOURCE_QUOTAS] = await self._api.records(RESOURCE_QUOTAS, namespace)
        jobs = self._view.within(MPI_JOBS, namespace)
        few = not isinstance(jobs, Answer) and len(jobs) <= limits.MAX_LISTED_JOBS
        if few and self._view.silence(MPI_JOBS) > limits.MAX_SILENCE_SECONDS:
            caches[MPI_JOBS] = await self._api.records(MPI_JOBS, namespace)
        return caches

    def _other_pods(self, namespace: str) -> Objects:
        return {kind.pods: copy(self._view.within(kind.pods, namespace)) for kind in other_jobs.all_kinds()}

    async def _judge(
        self, batch: list[WaitingJob], entries: list[LedgerEntry], view: ClusterView, room: quick_fit.Room
    ) -> dict[WaitingJob, Decision | Exception]:
        """The verdicts. Jobs without a verdict wait for the next round. Adds the use of admitted jobs to `entries`."""
        decisions: dict[WaitingJob, Decision | Exception] = {}
        deadline = 0.0
        for job in sorted(batch, key=lambda job: bool(job.by_cache.denied)):
            if job.answer.done():  # too late: the API server does not store the job
                continue
            decision = decisions[job] = job.by_cache if job.certain(room) else job.judged(view)
            reserved = None if isinstance(decision, Exception) or decision.denied else decision.reservation
            if job.writes and reserved is not None:
                entries[:] = [entry for entry in entries if entry.reservation != reserved]
                entries.append(LedgerEntry(reserved, self._api.now() + limits.LIFETIME_SECONDS))
                room.promise(reserved)
                deadline = deadline or asyncio.get_running_loop().time() + limits.MAX_JUDGING_SECONDS
            if 0 < deadline < asyncio.get_running_loop().time():
                break
            await asyncio.sleep(0)  # lets reviews run
        return decisions

    async def _judge_again(self, namespace: str, rejected: list[WaitingJob], view: Overlay) -> None:
        """Reject the jobs that still do not fit with a newer list of pods. The next round judges the other jobs."""
        await asyncio.sleep(limits.PODS_COUNTED_SECONDS)
        pods = await self._api.records(PODS, namespace)
        later = Overlay(self._view, namespace, {**view.replaced, PODS: pods, **self._other_pods(namespace)})
        for job in rejected:
            job.rejections += 1
            decision = job.judged(later if job.rejections < limits.MAX_REJECTIONS else view)
            if isinstance(decision, Exception) or decision.denied:
                self._answer(job, decision)
            await asyncio.sleep(0)  # lets reviews run

    def _answer(self, job: WaitingJob, answer: Decision | Exception, left_out: Sequence[str] = ()) -> None:
        if job.answer.done():
            return
        if isinstance(answer, Exception):
            self._on_outcome("unavailable" if isinstance(answer, ClusterError) else "late")
            job.answer.set_exception(answer)
            return
        full = answer.reservation is not None and answer.reservation.name in left_out
        self._on_outcome("not-reserved" if answer.denied else "full" if full else "reserved")
        job.answer.set_result(answer)
