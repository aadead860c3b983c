"""With --deadline-events, Events on a job tell its users when most of its time is over, and when all of it is.

Every replica tells everything: the name of an Event follows from what it tells, so that a second one is a conflict.
Why none is lost by a restart, and none told again when the API server has dropped the Event: `deadlines`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from webhook.api.mpijob import API_VERSION
from webhook.client.events import write_event
from webhook.client.watch import Watch
from webhook.cluster.job_lives import JobLife, Launcher, launcher_key
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.jobs import LAUNCHER_SUFFIX
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.companions import deadlines
from webhook.companions.deadlines import Notice
from webhook.companions.paced import PacedClient
from webhook.companions.reconciler import Reconciler
from webhook.predict.deadlines import remaining

NAME: Final = "deadline-events"
TOLD: Final = "told"
KNOWN: Final = "known"
OUTCOMES: Final = (TOLD, KNOWN)
"""Told by this replica; told already, by another one or by this one before it was started."""

# Seconds. The API server's clock may have been set meanwhile.
LONGEST_WAIT: Final = 300.0
UNKNOWN_WAIT: Final = 30.0


class DeadlineEvents:
    """Tells what is due of each job that `lives` and `launchers` show, by the API server's clock, `now`."""

    outcomes: Counter[str]
    """How often what was due, by OUTCOMES."""

    def __init__(
        self,
        *,
        api: PacedClient,
        lives: Watch[ByNamespace, JobLife],
        launchers: Watch[ByNamespace, Launcher],
        now: Callable[[], float],
        log: Any,
    ) -> None:
        self._api = api
        self._lives = lives
        self._launchers = launchers
        self._now = now
        self._log = log
        self._told: dict[ByNamespace, set[str]] = {}
        self.outcomes = Counter(dict.fromkeys(OUTCOMES, 0))
        self.reconciler: Reconciler[ByNamespace] = Reconciler(NAME, self.reconcile, log=log)
        lives.store.on_change(lambda key, *_: self.reconciler.add(key))
        launchers.store.on_change(self._launcher_changed)

    def _launcher_changed(self, key: ByNamespace, *_: object) -> None:
        self.reconciler.add((key[0], key[1].removesuffix(LAUNCHER_SUFFIX)))

    async def reconcile(self, key: ByNamespace) -> float | None:
        """Tell what is due of this job; returns after how many seconds to look again."""
        job = self._lives.get(key)
        if job is ABSENT:
            self._told.pop(key, None)
            return None
        launcher = UNKNOWN if job is UNKNOWN else self._launchers.get(launcher_key(job))
        if job is UNKNOWN or launcher is UNKNOWN:
            return UNKNOWN_WAIT
        counting = None if launcher is ABSENT else launcher
        for notice in deadlines.due(job, counting, self._now()):
            if notice.key not in self._told.get(key, ()):
                await self._tell(job, notice)
                self._told.setdefault(key, set()).add(notice.key)
        wait = deadlines.next_due(job, counting, self._now())
        return None if wait is None else min(wait, LONGEST_WAIT)

    def remaining(self) -> Iterator[tuple[str, float]]:
        """The namespace and the seconds left of each job that is going to be ended; none while that is unknown.

        May be asked by another thread: it goes through a copy of what is known.
        """
        if self._lives.known and self._launchers.known:
            now, launchers = self._now(), self._launchers.store.records
            for job in list(self._lives.store.records.values()):
                if job.over:  # most are, and there may be thousands
                    continue
                left = remaining(job, launchers.get(launcher_key(job)), now)
                if left is not None:
                    yield job.namespace, left

    async def _tell(self, job: JobLife, notice: Notice) -> None:
        about = {"apiVersion": API_VERSION, "kind": "MPIJob", "name": job.name, "uid": job.uid}
        told = await write_event(
            self._api,
            job.namespace,
            about,
            reason=notice.reason,
            message=notice.note,
            kind="Warning",
            key=notice.key,
        )
        self.outcomes[TOLD if told else KNOWN] += 1
        if told:
            self._log.info("deadline told", namespace=job.namespace, job=job.name, reason=notice.reason)
