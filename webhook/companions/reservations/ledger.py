"""No over-commit: verdicts on quotas that hold for all replicas of the service at once.

A cache is always a little late, so two replicas could both hand out the last GPU. Where a quota counts, the job is
therefore judged again with the quotas of that moment. What an admitted job will take is written into the namespace's
reservations (`webhook.cluster.resources.reservations`) before. A reservation counts for the few seconds until every
replica sees the job itself, and then expires. All times are by the API server's clock: those of nodes differ.

1. Announce: what a job will take is written, as not judged yet. The answer says what all have written until then.
2. Judge, beside all of that. Of two jobs one is announced later, and its replica hears of the other.
3. Confirm: what is admitted is written as such, and what is refused is withdrawn.
4. Answer.

What is announced ends after seconds, so a replica that is killed keeps out nobody for long: it has not answered. Only
what is confirmed within that time is admitted, so that whoever found it ended heard that it is confirmed. Nobody else
can judge what is announced, whatever the order: only its own replica knows whether it has answered.

Jobs that arrive together take these steps together, and one write confirms those and announces the next. Nobody has to
begin again because somebody else wrote: while that was so, the slower of two replicas got no turn for seconds.

A watch may have stalled without anybody noticing. So a reservation stays for longer than a watch may be silent here:
if nothing was heard of jobs for that long, all those of the namespace are listed, and the cache is good for as long
again if it has the same ones. Of thousands of jobs only the number is compared.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from webhook.admission.decision import Decision
from webhook.admission.pipelines import DeadlineExceeded
from webhook.client.calls import Client, ClusterError
from webhook.client.connection import Connection
from webhook.client.live_view import LiveView
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import LedgerEntry
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS
from webhook.cluster.train_jobs import TRAIN_JOB_PODS
from webhook.cluster.view import Answer
from webhook.companions.reservations.announcements import Announced, Announcements
from webhook.companions.reservations.judging import Asked, Decide, Judge, Known
from webhook.companions.reservations.leases import LedgerApi
from webhook.companions.reservations.sight import CLOCKS, UNJUDGED, Sight
from webhook.predict.quota.room import limits

# Seconds.
SWEEP: Final = 5.0
PAUSE: Final = 0.2  # before a job that was refused is judged again
SHARE: Final = 0.8  # of its time after which a job in doubt is refused
TOGETHER: Final = 100  # jobs in one write

LedgerOutcome = str
"""reserved | not-reserved | full | late | unavailable: a metric label."""
OUTCOMES: Final[tuple[LedgerOutcome, ...]] = ("reserved", "not-reserved", "full", "late", "unavailable")


@dataclass(frozen=True, slots=True)
class _Due:
    """A verdict on a job that was announced: it is said as soon as it is written."""

    decision: Decision
    reserved: LedgerEntry | None
    """What to reserve; nothing for a job that is refused."""
    announced: LedgerEntry
    left_out: bool
    """There was no room to announce it."""
    lease: str
    """The uid of the Lease in which it was."""


class QuotaLedger:
    """Judges jobs in namespaces with quotas. `run` removes reservations that have expired.

    `namespace` is the service's own. `on_outcome` gets the outcome for each job.
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
        self._log = log
        self._on_outcome = on_outcome
        self._clock = clock or api.now
        self._sight = Sight(view, self._now, self._clock)
        self._judge = Judge(self._now, view, self._clock, namespace=namespace)
        self._waiting: dict[str, deque[Asked]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._announcements = Announcements(self._now, view, self._sight, log=log)

    async def verdict(
        self, namespace: str, *, decide: Decide, first: Decision, writes: bool, seconds: float
    ) -> Decision:
        """The verdict by the quotas of this moment. What an admitted job takes is reserved if it `writes`.

        `first` is the verdict by the cache.
        ClusterError when quotas or reservations cannot be used: then the verdict by the cache has to be enough.
        DeadlineExceeded after `seconds`: when so many jobs come at once, the cache would admit too many.
        """
        now = asyncio.get_running_loop().time()
        wanted = first.reservation if writes and not first.denied else None
        quotas = self._view.within(RESOURCE_QUOTAS, namespace)
        known = limits(() if isinstance(quotas, Answer) else quotas.values())
        asked = Asked(decide, first, known, wanted, writes, now, now + SHARE * seconds)
        self._ask(namespace, asked)
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
                await self._announcements.sweep(busy=self._workers, at=self._clock())
                for namespace in self._announcements.all_unwritten():
                    self._start(namespace)
            except Exception as error:  # noqa: BLE001 - the next sweep must come
                self._log.warning("quota ledger not swept", error=type(error).__name__)

    async def close(self) -> None:
        """Stop working."""
        for task in list(self._workers.values()):
            task.cancel()
        await asyncio.gather(*self._workers.values(), return_exceptions=True)

    def _ask(self, namespace: str, asked: Asked) -> None:
        if asked.answer.done():
            return
        self._start(namespace)
        self._waiting[namespace].append(asked)

    def _start(self, namespace: str) -> None:
        if namespace not in self._workers:
            self._waiting[namespace] = deque()
            self._workers[namespace] = asyncio.create_task(self._work(namespace), name=f"quota ledger {namespace}")

    async def _work(self, namespace: str) -> None:
        """Judge the jobs that wait in `namespace`, in batches, until none is left."""
        waiting = self._waiting[namespace]
        due: dict[Asked, _Due] = {}
        try:
            while waiting or due or self._announcements.unwritten(namespace):
                batch = [waiting.popleft() for _ in range(min(len(waiting), TOGETHER))]
                try:
                    await self._round(namespace, [asked for asked in batch if not asked.answer.done()], due)
                except Exception as error:  # noqa: BLE001 - it is raised for everybody who waits
                    self._log.warning("quota ledger not usable", namespace=namespace, reason=str(error)[:256])
                    self._announcements.give_up(namespace)
                    for asked in (*due, *batch):
                        self._fail(asked, error)
                    due.clear()
        finally:
            del self._workers[namespace], self._waiting[namespace]

    async def _round(self, namespace: str, batch: list[Asked], due: dict[Asked, _Due]) -> None:
        """Confirm what is `due` and answer it, announce and judge the jobs in `batch`; these are due then."""
        for asked in [asked for asked in due if asked.answer.done()]:  # it was too late
            self._withdraw(namespace, due.pop(asked))
        at = self._clock()
        wanted = {asked: LedgerEntry(asked.wanted, at + UNJUDGED, unjudged=True) for asked in batch if asked.wanted}
        announcing = asyncio.ensure_future(self._announcements.announce(namespace, [*wanted.values()], at=at))
        reading = asyncio.ensure_future(self._read(namespace)) if batch else None
        # Both to their end: a write that went on beside the next one could undo it.
        await asyncio.gather(announcing, *([reading] if reading else ()), return_exceptions=True)
        announced = announcing.result()
        self._answer(namespace, due, announced)
        if reading is None:
            return
        known = reading.result()
        entries = self._sight.counting(announced.entries)
        jobs = await self._sight.jobs(namespace)  # after `counting`: a job that is seen by then has to be among them
        known |= {} if jobs is None else {MPI_JOBS: jobs}
        moving = bool(announced.entries) or self._sight.moving(namespace, known[RESOURCE_QUOTAS])
        judged = await self._judge.judge(namespace, batch, entries, known, moving=moving)
        for asked, decision in judged.decisions.items():
            reserved = judged.reserved.get(asked)
            if reserved is not None:
                self._announcements.reserve(namespace, reserved)
            if asked in wanted:
                left_out = wanted[asked].reservation.name in announced.left_out
                due[asked] = _Due(decision, reserved, wanted[asked], left_out, announced.lease)
            else:
                self._say(asked, decision)
        for asked, error in judged.failed.items():
            self._fail(asked, error)
        for asked in judged.at_once:
            self._ask(namespace, asked)
        for asked in judged.again:
            asyncio.get_running_loop().call_later(PAUSE, self._ask, namespace, asked)

    async def _read(self, namespace: str) -> Known:
        # Pods first: one that is newer than the quotas would neither be in `used` nor count as still to come.
        pods: Known = {PODS: await self._sight.pods(namespace), TRAIN_JOB_PODS: self._sight.train_pods(namespace)}
        return {**pods, RESOURCE_QUOTAS: await self._now.quotas(namespace)}

    def _answer(self, namespace: str, due: dict[Asked, _Due], confirmed: Announced) -> None:
        """Say the verdicts that are written; DeadlineExceeded where others may have taken them for ended before."""
        for asked, each in due.items():
            in_time = self._clock() < each.announced.expires - CLOCKS and each.lease == confirmed.lease
            if asked.answer.done():
                self._withdraw(namespace, each)
            elif each.reserved is not None and not in_time:
                self._withdraw(namespace, each)
                self._fail(asked, DeadlineExceeded(f"the quotas of {namespace}"))
            else:
                full = each.left_out or each.announced.reservation.name in confirmed.left_out
                self._say(asked, each.decision, full=full)
        due.clear()

    def _withdraw(self, namespace: str, due: _Due) -> None:
        if due.reserved is not None:
            self._announcements.release(namespace, due.reserved)

    def _fail(self, asked: Asked, error: Exception) -> None:
        if not asked.answer.done():
            self._on_outcome("unavailable" if isinstance(error, ClusterError) else "late")
            asked.fail(error)

    def _say(self, asked: Asked, decision: Decision, *, full: bool = False) -> None:
        self._on_outcome("not-reserved" if decision.denied else "full" if full else "reserved")
        if not asked.answer.done():
            asked.answer.set_result(decision)
