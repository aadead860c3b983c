"""Applies the current policies to every job that has not ended, as if the job were created now.

Every replica audits all jobs, periodically and when policies change.

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

import msgspec

from webhook.admission.decision import Decision
from webhook.admission.what_if import resubmitted
from webhook.api import mpijob
from webhook.client import wire
from webhook.client.connection import Connection
from webhook.client.live_view import LiveView
from webhook.client.paging import pages
from webhook.client.store import by_namespace
from webhook.client.wire import WatchFault
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.sccs import SECURITY_CONTEXT_CONSTRAINTS
from webhook.cluster.view import ABSENT, UNKNOWN, Overlay
from webhook.cluster.without_jobs import WithoutJobs
from webhook.kit.settings import Action
from webhook.parts.standing_audit.limits import AUDITED_JOBS_PER_PAGE, MAX_AUDIT_SHARE
from webhook.policy.in_force import PolicySet
from webhook.work_limit import TooExpensive, limited

Broken = tuple[str, Action]
"""A rule that a job breaks, and the action."""
Outcomes = dict[ByNamespace, tuple[Broken, ...]]
JOBS: Final = f"/apis/{mpijob.API_VERSION}/mpijobs"
# Seconds.
INTERVAL: Final = 600.0
DEBOUNCE: Final = 5.0  # several policies are often changed together
RETRY: Final = 60.0
# Ratio of the pause after an audit to the duration of the audit.
REST: Final = 10


def broken(decision: Decision) -> tuple[Broken, ...]:
    return tuple(sorted({(finding.rule, action) for action, finding in decision.findings}))


@dataclass(eq=False)
class StandingAudit:
    """The periodic audit."""

    connection: Connection
    view: LiveView
    policies: Callable[[], PolicySet]
    today: Callable[[], date]
    log: Any
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: InitVar[Callable[[], float] | None] = None
    outcomes: Outcomes = field(default_factory=dict, init=False)
    """The outcomes of the last complete audit."""
    problem: str = field(default="", init=False)
    """Why the last audit is incomplete; empty if it is complete."""
    seconds: float = field(default=0, init=False)
    """Duration of the last complete audit."""

    def __post_init__(self, clock: Callable[[], float] | None) -> None:
        self._clock = clock or asyncio.get_running_loop().time
        self._ended = -inf
        self._outdated = asyncio.Event()

    @property
    def age(self) -> float:
        """Seconds since the last complete audit; infinite before the first."""
        return self._clock() - self._ended

    def concerns(self) -> dict[str, str]:
        return {"audit-incomplete": f"the jobs that exist were not judged: {self.problem}"} if self.problem else {}

    def resync(self) -> None:
        self._outdated.set()

    async def run(self) -> NoReturn:
        while True:
            began = self._clock()
            await self.audit()
            await self._rest(self._clock() - began)

    async def audit(self) -> None:
        self._outdated.clear()
        began, outcomes, problem = self._clock(), Outcomes(), ""
        try:
            async for page in pages(self.connection.list_page, JOBS, limit=AUDITED_JOBS_PER_PAGE):
                for data in page.items or ():
                    before = self._clock()
                    try:
                        self._judge(data, outcomes)
                    except Exception as error:  # noqa: BLE001 - one job must not hide the others
                        problem = wire.place(error)
                    await self.sleep((self._clock() - before) * (1 / MAX_AUDIT_SHARE - 1))
        except WatchFault as fault:
            self._note(str(fault))
            return
        self._note(problem)
        self.outcomes, self._ended = outcomes, self._clock()
        self.seconds = self._ended - began

    def _note(self, problem: str) -> None:
        if problem and not self.problem:
            self.log.warning("audit incomplete", reason=problem)
        self.problem = problem

    async def _rest(self, took: float) -> None:
        pause = RETRY if self.problem else max(INTERVAL, REST * took)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._outdated.wait()
        await self.sleep(max(DEBOUNCE, took))

    def _judge(self, data: msgspec.Raw, outcomes: Outcomes) -> None:
        key = by_namespace(wire.decode(wire.objects, data).metadata)
        job = self.view.get(MPI_JOBS, key)
        if job is ABSENT or (isinstance(job, MPIJobRecord) and job.over):
            return
        # An audit does not look up which accounts may use an SCC, as reviews do. So the SCCs count as unknown.
        view = WithoutJobs(Overlay(self.view, "", {SECURITY_CONTEXT_CONSTRAINTS: UNKNOWN}))
        try:
            decision = limited(
                partial(resubmitted.judge, data, policies=self.policies(), view=view, today=self.today())
            )
        except TooExpensive:
            self.log.warning("too expensive to judge", companion="audit", namespace=key[0], name=key[1])
            decision = resubmitted.too_expensive_to_judge(data, policies=self.policies(), view=view)
        if decision is not None:
            outcomes[key] = broken(decision)
