"""No over-commit: verdicts on quotas that hold for all replicas of the service at once.

A cache is always a little late, so two replicas could both hand out the last GPU. Where a quota counts, the job is
therefore judged again with the quotas of that moment. What an admitted job will take is written into the namespace's
reservations (`webhook.cluster.resources.reservations`), on condition that nobody else has written there since. A
reservation counts for the few seconds until every replica sees the job itself, and then expires. All times are by the
API server's clock: those of nodes differ.

A watch may have stalled without anybody noticing. So a reservation stays for longer than a watch may be silent here:
if nothing was heard of jobs for that long, all those of the namespace are listed, and the cache is good for as long
again if it has the same ones. Of thousands of jobs only the number is compared.

A refusal has to be right as well. A new pod is in a quota's `used` before anybody can see it, so for a moment it counts
twice. Who is refused while pods come and go is judged again, and not refused while the pods as they are after the
quotas were read would let the job in. Only that last time are pods listed: with thousands it takes a second.

Jobs that arrive together are judged one after the other and written in one go, and replicas that meet each other's
writes leave each other time. One Lease for a namespace is enough: 2,000 reservations fit, and several would have to be
read, judged and written as one all the same, or two replicas would write the last GPU into one each
(`tests/bench/quota_burst.py` counts the conflicts).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from webhook.admission.decision import Decision
from webhook.admission.pipelines import DeadlineExceeded
from webhook.client.calls import Client, ClusterError
from webhook.client.connection import Connection
from webhook.client.live_view import LiveView
from webhook.cluster.overlay import Overlay
from webhook.cluster.resource import Resource
from webhook.cluster.resources import reservations
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS, LedgerEntry, Reservations
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.view import Answer, ClusterView
from webhook.companions.reservations.leases import LedgerApi, lease_name
from webhook.companions.reservations.sight import LIFETIME, Sight

# Seconds.
SWEEP: Final = 5.0
ATTEMPTS: Final = 50
TURN: Final = 1.5  # times what a batch took: the others' share where several replicas write
LONGEST_TURN: Final = 1.0
STRETCH: Final = 0.01  # of judging, before other reviews go on
# A job that is refused while pods come and go is judged up to REFUSALS times, with PAUSE seconds in between.
REFUSALS: Final = 5
PAUSE: Final = 0.2
LONGEST_DOUBT: Final = 0.6  # beyond this only as many as DOUBTS: quotas count pods late on a busy control plane
DOUBTS: Final = 4
SHARE: Final = 0.8  # of its time after which a job in doubt is refused
TOGETHER: Final = 100  # jobs in one write

LedgerOutcome = str
"""reserved | not-reserved | full | conflict | late | unavailable: a metric label."""
OUTCOMES: Final[tuple[LedgerOutcome, ...]] = ("reserved", "not-reserved", "full", "conflict", "late", "unavailable")

Decide = Callable[[ClusterView], Decision]
"""Finds the verdict with another view. What it raises is raised for whoever asked."""


@dataclass(slots=True, eq=False)
class _Asked:
    """A job that waits for its verdict."""

    decide: Decide
    writes: bool
    """Whether to reserve what it takes: not for a dry run."""
    since: float
    """When it was asked, by the loop's clock."""
    until: float
    """When it has to be answered, by the loop's clock."""
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
        self._sight = Sight(view, self._now, self._clock)
        self._waiting: dict[str, deque[_Asked]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._written: dict[str, str] = {}  # namespace -> what version this replica wrote last

    async def verdict(self, namespace: str, *, decide: Decide, writes: bool, seconds: float) -> Decision:
        """The verdict by the quotas of this moment. What an admitted job takes is reserved if it `writes`.

        ClusterError when quotas or reservations cannot be used: then the verdict by the cache has to be enough.
        DeadlineExceeded after `seconds`: when so many jobs come at once, the cache would admit too many.
        """
        now = asyncio.get_running_loop().time()
        asked = _Asked(decide, writes, now, now + SHARE * seconds)
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
                self._sight.forget()
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
            self._written.pop(namespace, None)

    async def _settle(self, namespace: str, batch: list[_Asked]) -> list[_Asked]:
        """Answer the jobs in `batch`; returns those that have to be judged again."""
        loop = asyncio.get_running_loop()
        for _ in range(ATTEMPTS):
            batch[:] = [asked for asked in batch if not asked.answer.done()]
            started = loop.time()
            # Pods first: one that is newer than the quotas would neither be in `used` nor count as still to come.
            pods = await self._sight.pods(namespace)
            jobs = await self._sight.jobs(namespace)
            lease, quotas = await asyncio.gather(self._now.reservations(namespace), self._now.quotas(namespace))
            kept = {entry.reservation.name: entry for entry in self._sight.kept(lease.entries)}
            entries = {entry.reservation.name: entry for entry in self._sight.counting(kept.values())}
            known: dict[Resource[Any, Any], Any] = {
                RESOURCE_QUOTAS: quotas,
                **({} if jobs is None else {MPI_JOBS: jobs}),
            }
            decisions, new = await self._judged(namespace, batch, entries, {**known, PODS: pods})
            left_out: list[str] = []
            turn = 0.0
            if new:
                text, left_out = self._text(kept | new)
                version = await self._now.write(namespace, lease, text)
                if not version:
                    self._on_outcome("conflict")
                    self._written[namespace] = ""
                    continue
                if lease.version != self._written.get(namespace, lease.version):
                    turn = min(TURN * (loop.time() - started), LONGEST_TURN)
                self._written[namespace] = version
            moving = bool(kept) or self._sight.moving(namespace)
            refused = [asked for asked, decision in decisions.items() if moving and decision.denied]
            again = {asked for asked in refused if self._in_doubt(asked)}
            if last := [asked for asked in refused if asked not in again and loop.time() < asked.until]:
                later = self._overlay(namespace, entries, {**known, PODS: await self._now.pods(namespace)})
                again |= {asked for asked in last if _admits(asked, later)}
            for asked, decision in decisions.items():
                if asked not in again:
                    full = decision.reservation is not None and decision.reservation.name in left_out
                    self._on_outcome("not-reserved" if decision.denied else "full" if full else "reserved")
                    if not asked.answer.done():
                        asked.answer.set_result(decision)
            if turn:  # somebody else writes too, and may have lost to us: now it is their turn
                await asyncio.sleep(turn)
            return [*again]
        raise DeadlineExceeded(f"the reservations of {namespace} change too fast")

    async def _judged(
        self, namespace: str, batch: list[_Asked], entries: dict[str, LedgerEntry], known: dict[Resource[Any, Any], Any]
    ) -> tuple[dict[_Asked, Decision], dict[str, LedgerEntry]]:
        """The verdicts, and what is to be reserved, which is added to `entries`."""
        loop = asyncio.get_running_loop()
        decisions: dict[_Asked, Decision] = {}
        new: dict[str, LedgerEntry] = {}
        resumed = loop.time()
        for asked in batch:
            try:
                decision = decisions[asked] = asked.decide(self._overlay(namespace, entries, known))
            except Exception as error:  # noqa: BLE001 - it concerns this job alone
                _fail(asked, error)
                continue
            if asked.writes and decision.reservation is not None and not decision.denied:
                entry = LedgerEntry(decision.reservation, self._clock() + LIFETIME)
                entries[decision.reservation.name] = new[decision.reservation.name] = entry
            if loop.time() - resumed > STRETCH:
                await asyncio.sleep(0)  # so that other reviews go on
                resumed = loop.time()
        return decisions, new

    def _in_doubt(self, asked: _Asked) -> bool:
        """Whether the job, which was refused once more, is to be judged again in any case."""
        asked.refusals += 1
        soon = asyncio.get_running_loop().time() - asked.since < LONGEST_DOUBT
        return asked.refusals < (REFUSALS if soon else DOUBTS)

    def _text(self, kept: dict[str, LedgerEntry]) -> tuple[str, list[str]]:
        """What is written, and which jobs there is no room for: what these take is not reserved."""
        text, left_out = reservations.encode(kept.values())
        if left_out:  # those that are seen make room
            text, left_out = reservations.encode(self._sight.counting(kept.values()))
        if left_out:
            self._log.warning("reservations are full", left_out=len(left_out))
        return text, left_out

    def _overlay(
        self, namespace: str, entries: dict[str, LedgerEntry], known: dict[Resource[Any, Any], Any]
    ) -> ClusterView:
        reserved = Reservations(namespace, "", "", tuple(entries.values()))
        return Overlay(
            self._view, namespace, {**known, RESERVATIONS: {(self._namespace, lease_name(namespace)): reserved}}
        )

    async def _sweep(self) -> None:
        """Delete the Leases in which every reservation has expired."""
        known = self._view.all(RESERVATIONS)
        for lease in () if isinstance(known, Answer) else list(known.values()):
            if self._sight.kept(lease.entries) or lease.namespace in self._workers:
                continue
            try:
                await self._now.delete(lease)
            except ClusterError as error:
                self._log.warning("reservations are left behind", namespace=lease.namespace, reason=str(error))


def _admits(asked: _Asked, view: ClusterView) -> bool:
    try:
        return not asked.decide(view).denied
    except Exception:  # noqa: BLE001 - then the verdict stays what it was
        return False


def _fail(asked: _Asked, error: Exception) -> None:
    """Raise `error` for whoever waits."""
    if not asked.answer.done():
        asked.answer.set_exception(error)
