"""Applies the current policies to every job that has not ended, as if the job were created now.

Every replica audits all jobs, periodically and when policies change. Between audits, a changed job is judged alone.

Reviews have priority. After each job the audit sleeps three times as long as the job took, so that an audit uses a
quarter of a processor. The pause after an audit is at least ten times as long as the audit. A change of policies
shortens the pause to the duration of the audit.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from datetime import date
from functools import partial
from math import inf
from typing import Any, Final, NoReturn
from urllib.parse import quote

import msgspec

from webhook.admission.decision import Decision
from webhook.admission.what_if import resubmitted
from webhook.api import mpijob
from webhook.client import wire
from webhook.client.connection import Connection
from webhook.client.live_view import LiveView
from webhook.client.objects import get
from webhook.client.paging import pages
from webhook.client.store import by_namespace
from webhook.client.wire import WatchFault
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.sccs import SECURITY_CONTEXT_CONSTRAINTS
from webhook.cluster.view import ABSENT, UNKNOWN, Answer, Overlay
from webhook.cluster.without_jobs import WithoutJobs
from webhook.controllers.reconciler import PacedClient, Reconciler
from webhook.kit.settings import Action
from webhook.parts.standing_audit.limits import AUDITED_JOBS_PER_PAGE, MAX_AUDIT_SHARE
from webhook.parts.standing_audit.reports import Reports
from webhook.policy.in_force import PolicySet
from webhook.work_limit import TooExpensive, limited

Broken = tuple[str, Action]
"""A rule that a job breaks, and the action."""
NAME: Final = "audit"
JOBS: Final = f"/apis/{mpijob.API_VERSION}/mpijobs"
# Seconds.
INTERVAL: Final = 600.0
DEBOUNCE: Final = 5.0  # several policies are often changed together
SETTLE: Final = 2.0  # controllers such as Kueue change new jobs
RETRY: Final = 60.0
# Ratio of the pause after an audit to the duration of the audit.
REST: Final = 10


def broken(decision: Decision) -> tuple[Broken, ...]:
    return tuple(sorted({(finding.rule, action) for action, finding in decision.findings}))


@dataclass(eq=False)
class StandingAudit:
    """The controller."""

    connection: Connection
    api: PacedClient
    view: LiveView
    policies: Callable[[], PolicySet]
    today: Callable[[], date]
    log: Any
    reports: Reports | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: InitVar[Callable[[], float] | None] = None
    outcomes: dict[ByNamespace, tuple[Broken, ...]] = field(default_factory=dict, init=False)
    """Incomplete until the end of the first audit."""
    problem: str = field(default="", init=False)
    """Why the last audit is incomplete; empty if it is complete."""
    seconds: float = field(default=0, init=False)
    """Duration of the last complete audit."""

    def __post_init__(self, clock: Callable[[], float] | None) -> None:
        self.reconciler: Reconciler[ByNamespace] = Reconciler(NAME, self.look, log=self.log)
        self._clock = clock or asyncio.get_running_loop().time
        self._ended = -inf
        self._begun = False
        self._outdated = asyncio.Event()
        self._touched: set[ByNamespace] = set()
        if self.reports is not None:
            self.reports.changed, self.reports.moved = self._add, self.resync
        self.view.on_change(MPI_JOBS, self._job_changed)
        self.view.on_change(NAMESPACES, self._namespace_changed)

    @property
    def age(self) -> float:
        """Seconds since the last complete audit; infinite before the first."""
        return self._clock() - self._ended

    def concerns(self) -> dict[str, str]:
        return {"audit-incomplete": f"the jobs that exist were not judged: {self.problem}"} if self.problem else {}

    def resync(self) -> None:
        self._outdated.set()

    async def run(self) -> NoReturn:
        if self.reports is not None:
            await self.reports.settled()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reconciler.run())
            while True:
                began = self._clock()
                await self.audit()
                await self._rest(self._clock() - began)

    async def audit(self) -> None:
        self._begun = True
        self._outdated.clear()
        # Jobs that change during the audit. Their new verdicts are kept, because the list may have their older states.
        self._touched.clear()
        began, outcomes = self._clock(), dict[ByNamespace, tuple[Broken, ...]]()
        try:
            async for page in pages(self.connection.list_page, JOBS, limit=AUDITED_JOBS_PER_PAGE):
                for data in page.items or ():
                    before = self._clock()
                    await self._take(data, outcomes)
                    await self.sleep((self._clock() - before) * (1 / MAX_AUDIT_SHARE - 1))
        except WatchFault as fault:
            if not self.problem:
                self.log.warning("audit incomplete", reason=str(fault))
            self.problem = str(fault)
            return
        self.outcomes = outcomes | {key: self.outcomes[key] for key in self._touched if key in self.outcomes}
        self._ended = self._clock()
        self.seconds, self.problem = self._ended - began, ""

    async def look(self, key: ByNamespace) -> float | None:
        """Judges the stored job. Returns the seconds until the next attempt to write its report."""
        path = f"{MPI_JOBS.path(MPI_JOBS.api_versions[0], quote(key[0], safe=''))}/{quote(key[1], safe='')}"
        stored = None if self._is_over(key) else await get(self.api, path)
        if stored is None or self._is_over(key):  # the job may have been deleted during the call
            self.outcomes.pop(key, None)
            decision = None
        else:
            decision = await self._judge(key, msgspec.json.encode(stored), self.outcomes)
        job = self._reported(key)
        return None if job is None or self.reports is None else await self.reports.write(job, decision)

    async def _rest(self, took: float) -> None:
        pause = RETRY if self.problem else max(INTERVAL, REST * took)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._outdated.wait()
        await self.sleep(max(DEBOUNCE, took))

    async def _take(self, data: msgspec.Raw, outcomes: dict[ByNamespace, tuple[Broken, ...]]) -> None:
        key = by_namespace(wire.decode(wire.objects, data).metadata)
        try:
            decision = None if self._is_over(key) else await self._judge(key, data, outcomes)
            job = self._reported(key)
            if job is not None and self.reports is not None and self.reports.differs(job, decision):
                self.reconciler.add(key)
        except Exception:  # noqa: BLE001 - the audit must continue; the reconciler retries and reports the error
            self.reconciler.add(key)

    async def _judge(
        self, key: ByNamespace, data: bytes | msgspec.Raw, into: dict[ByNamespace, tuple[Broken, ...]]
    ) -> Decision | None:
        # An audit does not look up which accounts may use an SCC, as reviews do. So the SCCs count as unknown.
        view = WithoutJobs(Overlay(self.view, "", {SECURITY_CONTEXT_CONSTRAINTS: UNKNOWN}))
        try:
            decision = limited(
                partial(resubmitted.judge, data, policies=self.policies(), view=view, today=self.today())
            )
        except TooExpensive:
            self.log.warning("too expensive to judge", companion=NAME, namespace=key[0], name=key[1])
            decision = resubmitted.too_expensive_to_judge(data, policies=self.policies(), view=view)
        if decision is not None:
            into[key] = broken(decision)
        return decision

    def _reported(self, key: ByNamespace) -> MPIJobRecord | None:
        """The cached job; None if it is deleted. The garbage collector deletes the report of a deleted job."""
        job = self.view.get(MPI_JOBS, key)
        return job if isinstance(job, MPIJobRecord) else None

    def _job_changed(self, key: ByNamespace, old: MPIJobRecord | None, new: MPIJobRecord | None) -> None:
        if old is not None and (new is None or new.uid != old.uid) and self.reports is not None:
            self.reports.forget(old)
        if not self._begun:
            return
        if new is None or new.over:
            self._touched.add(key)
            self.outcomes.pop(key, None)
            if self.reports is not None:
                self.reconciler.add(key)
        elif old is None or _written(old) != _written(new):
            self._add(key)

    def _namespace_changed(self, name: str, old: Namespace | None, new: Namespace | None) -> None:
        if old is not None and new is not None and old.labels == new.labels:
            return  # only labels select policies
        jobs = self.view.within(MPI_JOBS, name)
        for key in () if isinstance(jobs, Answer) else jobs:
            self._add(key)

    def _add(self, key: ByNamespace) -> None:
        if not self._begun:
            return
        self._touched.add(key)
        self.reconciler.add(key, SETTLE)

    def _is_over(self, key: ByNamespace) -> bool:
        job = self.view.get(MPI_JOBS, key)
        return job is ABSENT or (isinstance(job, MPIJobRecord) and job.over)


def _written(job: MPIJobRecord) -> tuple[object, ...]:
    """Values that change if a user edits the job. `generation` does not change if only metadata change."""
    return job.uid, job.generation, job.queue, job.network_policy
