"""Events that inform a job's users at 80 % of its time limit, and when the limit ends the job.

Every replica writes every Event. An Event's name is derived from its content, so the second write is a conflict.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from webhook.api import duration
from webhook.api.annotations import NOTIFY_ONLY, TIMEOUT, TIMEOUT_ACTION
from webhook.api.mpijob import API_VERSION
from webhook.client.objects import write_event
from webhook.client.store import Kind, by_namespace
from webhook.client.watch import Watch
from webhook.cluster.job_lives import DEADLINE_EXCEEDED, JobLife, Launcher, launcher, launcher_key
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.jobs import JOBS, LAUNCHER_SUFFIX
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.controllers.reconciler import PacedClient, Reconciler
from webhook.predict.deadlines import FIELD, Deadline, deadlines, moment, remaining

LAUNCHERS: Final[Kind[ByNamespace, Launcher]] = Kind(
    "launchers", JOBS.path(JOBS.api_versions[0]), key=by_namespace, project=launcher
)

NOTICE_DURATION: Final = 45 * 60.0
"""Seconds for which a notice is due. The API server must store Events longer (`--event-ttl`, 1 h by default): a
restarted replica would otherwise write a notice twice.
"""

IS_NEAR: Final = "TimeLimitNear"
IS_OVER: Final = "TimeLimitReached"


@dataclass(frozen=True, slots=True)
class Notice:
    """The content of an Event. All replicas derive the same `key`."""

    key: str
    reason: str
    note: str


def due(job: JobLife, launcher: Launcher | None, now: float) -> list[Notice]:
    """The notices that are due at `now`, including notices that are already written."""
    return [notice for notice, since, until in _notices(job, launcher) if since <= now < until]


def next_due(job: JobLife, launcher: Launcher | None, now: float) -> float | None:
    """Seconds until the next notice; None if no notice follows as long as the job stays the same."""
    return min((since - now for _, since, _ in _notices(job, launcher) if since > now), default=None)


def _notices(job: JobLife, launcher: Launcher | None) -> Iterator[tuple[Notice, float, float]]:
    limits = deadlines(job, launcher)
    hard = next((limit for limit in limits if limit.ends_job), None)
    for limit in limits:
        run = f"{job.uid}|{limit.started:.0f}|{limit.seconds}"
        near = limit.near, min(limit.end, limit.near + NOTICE_DURATION)
        if limit.ends_job:
            yield Notice(f"{run}|near", IS_NEAR, _near(limit)), *near
        else:
            yield Notice(f"{run}|asked-near", IS_NEAR, _notify_only(limit, hard, "80 % of the")), *near
            over = Notice(f"{run}|asked-over", IS_OVER, _notify_only(limit, hard, "The"))
            yield over, limit.end, limit.end + NOTICE_DURATION
    # The time alone does not show that the limit ended the job: a job may succeed in its last second.
    if job.ended is not None and job.reason == DEADLINE_EXCEEDED and job.managed_here and not job.leaving:
        seconds = launcher.limit if launcher is not None and launcher.owner == job.uid else job.limit
        yield Notice(f"{job.uid}|over", IS_OVER, _over(seconds)), job.ended, job.ended + NOTICE_DURATION


def _near(deadline: Deadline) -> str:
    return (
        f"80 % of this job's time limit of {duration.spell(deadline.seconds)} ({FIELD}) have passed. At "
        f"{moment(deadline.end)} the job is terminated and fails, even if it is nearly done: save a checkpoint before. "
        f"For a longer limit of the next job set the annotation {TIMEOUT}."
    )


def _notify_only(deadline: Deadline, hard: Deadline | None, part: str) -> str:
    end = "" if hard is None else f" until {moment(hard.end)}, when it is terminated ({FIELD})"
    passed = "have passed" if part == "The" else f"have passed, and the rest passes at {moment(deadline.end)}"
    return (
        f"{part} {duration.spell(deadline.seconds)} in the annotation {TIMEOUT} {passed}. The job continues{end}, "
        f"because of {TIMEOUT_ACTION}: {NOTIFY_ONLY}. Check whether it makes progress, and delete it if it does not."
    )


def _over(limit: int | None) -> str:
    span = "" if limit is None else f" of {duration.spell(limit)}"
    return (
        f"This job was terminated after its time limit{span} ({FIELD}), and has failed. Its pods' logs show its "
        f"progress. For a longer limit set the annotation {TIMEOUT}, and create the job again."
    )


NAME: Final = "deadline-events"
WRITTEN: Final = "told"
EXISTED: Final = "known"
OUTCOMES: Final = (WRITTEN, EXISTED)
"""Label values of the metric. `known`: another replica wrote the Event, or this replica wrote it before a restart."""

# Seconds. Longer waits would miss an adjustment of the API server's clock.
LONGEST_WAIT: Final = 300.0
UNKNOWN_WAIT: Final = 30.0


@dataclass(eq=False)
class DeadlineEvents:
    """The controller that writes the Events. `now` is the clock of the API server."""

    api: PacedClient
    lives: Watch[ByNamespace, JobLife]
    launchers: Watch[ByNamespace, Launcher]
    now: Callable[[], float]
    log: Any

    def __post_init__(self) -> None:
        self._written: dict[ByNamespace, set[str]] = {}
        self.outcomes = Counter(dict.fromkeys(OUTCOMES, 0))
        self.reconciler: Reconciler[ByNamespace] = Reconciler(NAME, self.reconcile, log=self.log)
        self.lives.store.on_change(lambda key, *_: self.reconciler.add(key))
        self.launchers.store.on_change(self._launcher_changed)

    def _launcher_changed(self, key: ByNamespace, *_: object) -> None:
        self.reconciler.add((key[0], key[1].removesuffix(LAUNCHER_SUFFIX)))

    async def reconcile(self, key: ByNamespace) -> float | None:
        """Returns the seconds until the next notice."""
        job = self.lives.get(key)
        if job is ABSENT:
            self._written.pop(key, None)
            return None
        launcher = UNKNOWN if job is UNKNOWN else self.launchers.get(launcher_key(job))
        if job is UNKNOWN or launcher is UNKNOWN:
            return UNKNOWN_WAIT
        existing = None if launcher is ABSENT else launcher
        for notice in due(job, existing, self.now()):
            if notice.key not in self._written.get(key, ()):
                await self._write(job, notice)
                self._written.setdefault(key, set()).add(notice.key)
        wait = next_due(job, existing, self.now())
        return None if wait is None else min(wait, LONGEST_WAIT)

    def remaining(self) -> Iterator[tuple[str, float]]:
        """The namespace and the remaining seconds of each job with a deadline; empty while jobs cannot be read."""
        if self.lives.known and self.launchers.known:
            now, launchers = self.now(), self.launchers.store.records
            for job in list(self.lives.store.records.values()):  # a copy: scrapes run in another thread
                if not job.over and (left := remaining(job, launchers.get(launcher_key(job)), now)) is not None:
                    yield job.namespace, left

    async def _write(self, job: JobLife, notice: Notice) -> None:
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
        self.outcomes[WRITTEN if written else EXISTED] += 1
        if written:
            self.log.info("deadline told", namespace=job.namespace, job=job.name, reason=notice.reason)
