"""With --deadline-events, Events inform a job's users at 80 % of its time limit, and at its end.

Every replica writes every Event. The name of an Event follows from its content, so that the second write is a conflict.

A notice is due in a window after its moment. The window is shorter than the hour for which an API server keeps Events.
While the notice is due, an Event with its name still exists if it was written, so none is written twice. A service that
was down for less than the window misses no notice.
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
from webhook.controllers.reconciler import PacedClient, Reconciler
from webhook.predict.deadlines import FIELD, Deadline, deadlines, moment, remaining

TOLD_FOR: Final = 45 * 60.0
"""Seconds for which a notice is due. Must be shorter than `--event-ttl` of the API server, whose default is 1 h."""

IS_NEAR: Final = "TimeLimitNear"
IS_OVER: Final = "TimeLimitReached"


@dataclass(frozen=True, slots=True)
class Notice:
    """A message about a job. All replicas use the same `key` for it, and no other notice has that key."""

    key: str
    reason: str
    note: str


def due(job: JobLife, launcher: Launcher | None, now: float) -> list[Notice]:
    """The notices that are due now, whether written or not."""
    return [notice for notice, since, until in _notices(job, launcher) if since <= now < until]


def next_due(job: JobLife, launcher: Launcher | None, now: float) -> float | None:
    """Seconds until the next notice is due; None if there will be none unless the job changes."""
    return min((since - now for _, since, _ in _notices(job, launcher) if since > now), default=None)


def _notices(job: JobLife, launcher: Launcher | None) -> Iterator[tuple[Notice, float, float]]:
    """All notices of a job in its present state, each with the times from and until which it is due."""
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
    # The reason decides, not the time: a job that succeeded in its last second was not terminated.
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
"""Written by this replica; written earlier, by another replica or before a restart."""

# Seconds. The API server's clock may be adjusted in the meantime.
LONGEST_WAIT: Final = 300.0
UNKNOWN_WAIT: Final = 30.0


@dataclass(eq=False)
class DeadlineEvents:
    """Writes the due notices of each job in `lives` and `launchers`, by the API server's clock, `now`."""

    api: PacedClient
    lives: Watch[ByNamespace, JobLife]
    launchers: Watch[ByNamespace, Launcher]
    now: Callable[[], float]
    log: Any

    def __post_init__(self) -> None:
        self._told: dict[ByNamespace, set[str]] = {}
        self.outcomes = Counter(dict.fromkeys(OUTCOMES, 0))
        """Due notices by outcome."""
        self.reconciler: Reconciler[ByNamespace] = Reconciler(NAME, self.reconcile, log=self.log)
        self.lives.store.on_change(lambda key, *_: self.reconciler.add(key))
        self.launchers.store.on_change(self._launcher_changed)

    def _launcher_changed(self, key: ByNamespace, *_: object) -> None:
        self.reconciler.add((key[0], key[1].removesuffix(LAUNCHER_SUFFIX)))

    async def reconcile(self, key: ByNamespace) -> float | None:
        """Write this job's due notices; returns the seconds until the next look."""
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
        """The namespace and the seconds left of each job with a deadline; empty while jobs cannot be read.

        Another thread may call it: it works on a copy.
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
        written = await write_event(
            self.api,
            job.namespace,
            about,
            reason=notice.reason,
            message=notice.note,
            kind="Warning",
            key=notice.key,
        )
        self.outcomes[TOLD if written else KNOWN] += 1
        if written:
            self.log.info("deadline told", namespace=job.namespace, job=job.name, reason=notice.reason)
