"""With --deadline-events, Events on a job tell its users when most of its time is over, and when all of it is.

Every replica tells everything: the name of an Event follows from what it tells, so that a second one is a conflict.

A notice is due in a window after its moment, which is shorter than the hour for which an API server keeps Events: as
long as it is due, an Event with its name is still there, so that one which exists was told, and none is told twice. A
service that was away for less than the window loses none.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from webhook.api import duration
from webhook.api.annotations import NOTIFY_ONLY, TIMEOUT, TIMEOUT_ACTION
from webhook.api.mpijob import API_VERSION
from webhook.client.objects import write_event
from webhook.client.watch import Watch
from webhook.cluster.job_lives import DEADLINE_EXCEEDED, JobLife, Launcher, launcher_key
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.jobs import LAUNCHER_SUFFIX
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.companions.reconciler import PacedClient, Reconciler
from webhook.predict.deadlines import FIELD, Deadline, deadlines, moment, remaining

TOLD_FOR: Final = 45 * 60.0
"""Seconds for which a notice is due. Shorter than `--event-ttl` of the API server, 1 h unless it was set."""

IS_NEAR: Final = "TimeLimitNear"
IS_OVER: Final = "TimeLimitReached"


@dataclass(frozen=True, slots=True)
class Notice:
    """What is to be told about a job; the same `key` for all replicas, and for no other notice."""

    key: str
    reason: str
    note: str


def due(job: JobLife, launcher: Launcher | None, now: float) -> list[Notice]:
    """What is to be told now, or has been told a short time ago."""
    return [notice for notice, since, until in _notices(job, launcher) if since <= now < until]


def next_due(job: JobLife, launcher: Launcher | None, now: float) -> float | None:
    """The seconds until there is something more to tell; None when nothing will be, unless something changes."""
    return min((since - now for _, since, _ in _notices(job, launcher) if since > now), default=None)


def _notices(job: JobLife, launcher: Launcher | None) -> Iterator[tuple[Notice, float, float]]:
    """All that will be told of a job as it is now, each with the times from and until which it is due."""
    counting = deadlines(job, launcher)
    hard = next((each for each in counting if each.ends_job), None)
    for each in counting:
        run = f"{job.uid}|{each.started:.0f}|{each.seconds}"
        near = each.near, min(each.end, each.near + TOLD_FOR)
        if each.ends_job:
            yield Notice(f"{run}|near", IS_NEAR, _near(each)), *near
        else:
            yield Notice(f"{run}|asked-near", IS_NEAR, _asked(each, hard, "80 % of the")), *near
            over = Notice(f"{run}|asked-over", IS_OVER, _asked(each, hard, "The"))
            yield over, each.end, each.end + TOLD_FOR
    # What counts is that it was ended: one that has succeeded in its last second was not.
    if job.ended is not None and job.reason == DEADLINE_EXCEEDED and job.managed_here and not job.leaving:
        limit = launcher.limit if launcher is not None and launcher.owner == job.uid else job.limit
        yield Notice(f"{job.uid}|over", IS_OVER, _over(limit)), job.ended, job.ended + TOLD_FOR


def _near(deadline: Deadline) -> str:
    return (
        f"80 % of the {duration.spell(deadline.seconds)} that this job may take ({FIELD}) are over. It is ended at "
        f"{moment(deadline.end)} and has failed then, however far it has come: let it save a checkpoint. "
        f"The next one gets more time by the annotation {TIMEOUT}."
    )


def _asked(deadline: Deadline, hard: Deadline | None, what: str) -> str:
    end = "" if hard is None else f" until {moment(hard.end)}, when it is ended ({FIELD})"
    over = "are over" if what == "The" else f"are over, and all of them at {moment(deadline.end)}"
    return (
        f"{what} {duration.spell(deadline.seconds)} of {TIMEOUT} {over}. The job goes on{end}, by "
        f"{TIMEOUT_ACTION}: {NOTIFY_ONLY}. Look whether it still makes progress, and delete it if it does not."
    )


def _over(limit: int | None) -> str:
    taken = "the time that it may take" if limit is None else f"the {duration.spell(limit)} that it may take"
    return (
        f"This job was ended after {taken} ({FIELD}), and has failed. Its pods' logs say how far it came. "
        f"For more time set the annotation {TIMEOUT}, and create it again."
    )


NAME: Final = "deadline-events"
TOLD: Final = "told"
KNOWN: Final = "known"
OUTCOMES: Final = (TOLD, KNOWN)
"""Told by this replica; told already, by another one or by this one before it was started."""

# Seconds. The API server's clock may have been set meanwhile.
LONGEST_WAIT: Final = 300.0
UNKNOWN_WAIT: Final = 30.0


@dataclass(eq=False)
class DeadlineEvents:
    """Tells what is due of each job that `lives` and `launchers` show, by the API server's clock, `now`."""

    api: PacedClient
    lives: Watch[ByNamespace, JobLife]
    launchers: Watch[ByNamespace, Launcher]
    now: Callable[[], float]
    log: Any

    def __post_init__(self) -> None:
        self._told: dict[ByNamespace, set[str]] = {}
        self.outcomes = Counter(dict.fromkeys(OUTCOMES, 0))
        """How often what was due."""
        self.reconciler: Reconciler[ByNamespace] = Reconciler(NAME, self.reconcile, log=self.log)
        self.lives.store.on_change(lambda key, *_: self.reconciler.add(key))
        self.launchers.store.on_change(self._launcher_changed)

    def _launcher_changed(self, key: ByNamespace, *_: object) -> None:
        self.reconciler.add((key[0], key[1].removesuffix(LAUNCHER_SUFFIX)))

    async def reconcile(self, key: ByNamespace) -> float | None:
        """Tell what is due of this job; returns after how many seconds to look again."""
        job = self.lives.get(key)
        if job is ABSENT:
            self._told.pop(key, None)
            return None
        launcher = UNKNOWN if job is UNKNOWN else self.launchers.get(launcher_key(job))
        if job is UNKNOWN or launcher is UNKNOWN:
            return UNKNOWN_WAIT
        counting = None if launcher is ABSENT else launcher
        for notice in due(job, counting, self.now()):
            if notice.key not in self._told.get(key, ()):
                await self._tell(job, notice)
                self._told.setdefault(key, set()).add(notice.key)
        wait = next_due(job, counting, self.now())
        return None if wait is None else min(wait, LONGEST_WAIT)

    def remaining(self) -> Iterator[tuple[str, float]]:
        """The namespace and the seconds left of each job that is going to be ended; none while that is unknown.

        May be asked by another thread: it goes through a copy of what is known.
        """
        if self.lives.known and self.launchers.known:
            now, launchers = self.now(), self.launchers.store.records
            for job in list(self.lives.store.records.values()):
                if job.over:  # most are, and there may be thousands
                    continue
                left = remaining(job, launchers.get(launcher_key(job)), now)
                if left is not None:
                    yield job.namespace, left

    async def _tell(self, job: JobLife, notice: Notice) -> None:
        about = {"apiVersion": API_VERSION, "kind": "MPIJob", "name": job.name, "uid": job.uid}
        told = await write_event(
            self.api,
            job.namespace,
            about,
            reason=notice.reason,
            message=notice.note,
            kind="Warning",
            key=notice.key,
        )
        self.outcomes[TOLD if told else KNOWN] += 1
        if told:
            self.log.info("deadline told", namespace=job.namespace, job=job.name, reason=notice.reason)
