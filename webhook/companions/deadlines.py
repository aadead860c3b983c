"""When a job's time is over, and what is told about that. Pure.

The clock is that of the launcher's Job, since that is what ends a job: it counts `activeDeadlineSeconds` of that Job (a
later change of the MPIJob is not copied there) from its `startTime`, which each resume sets anew (kubernetes
`pkg/controller/job/job_controller.go`). With `timeout-action: notify-only` the same clock counts the
seconds of the annotation too, and nothing ends.

A notice is due in a window after its moment, which is shorter than the hour for which an API server keeps Events: as
long as it is due, an Event with its name is still there, so that one which exists was told, and none is told twice. A
service that was away for less than the window loses none.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from webhook.api import duration
from webhook.api.annotations import NOTIFY_ONLY, TIMEOUT, TIMEOUT_ACTION
from webhook.companions.job_lives import DEADLINE_EXCEEDED, JobLife, Launcher

NEAR: Final = 0.8
TOLD_FOR: Final = 45 * 60.0
"""Seconds for which a notice is due. Shorter than `--event-ttl` of the API server, 1 h unless it was set."""

IS_NEAR: Final = "TimeLimitNear"
IS_OVER: Final = "TimeLimitReached"
_FIELD: Final = "activeDeadlineSeconds"


@dataclass(frozen=True, slots=True)
class Deadline:
    """A limit of a launcher that counts: seconds, and from when on (since 1970)."""

    seconds: int
    started: float
    ends_job: bool
    """Whether the job ends then; it is only told otherwise."""

    @property
    def near(self) -> float:
        """When most of the time is over."""
        return self.started + NEAR * self.seconds

    @property
    def end(self) -> float:
        """When all of it is over."""
        return self.started + self.seconds


@dataclass(frozen=True, slots=True)
class Notice:
    """What is to be told about a job; the same `key` for all replicas, and for no other notice."""

    key: str
    reason: str
    note: str


def deadlines(job: JobLife, launcher: Launcher | None) -> list[Deadline]:
    """The limits that count now, the earliest first; none while the job is suspended, or has ended."""
    if launcher is None or launcher.owner != job.uid or launcher.started is None:
        return []
    if launcher.suspended or launcher.ended or job.over or job.leaving or not job.managed_here:
        return []
    found = []
    if launcher.limit is not None:
        found.append(Deadline(launcher.limit, launcher.started, ends_job=True))
    if job.told_after is not None and (launcher.limit is None or job.told_after < launcher.limit):
        found.insert(0, Deadline(job.told_after, launcher.started, ends_job=False))
    return found


def due(job: JobLife, launcher: Launcher | None, now: float) -> list[Notice]:
    """What is to be told now, or has been told a short time ago."""
    return [notice for notice, since, until in _notices(job, launcher) if since <= now < until]


def next_due(job: JobLife, launcher: Launcher | None, now: float) -> float | None:
    """The seconds until there is something more to tell; None when nothing will be, unless something changes."""
    return min((since - now for _, since, _ in _notices(job, launcher) if since > now), default=None)


def remaining(job: JobLife, launcher: Launcher | None, now: float) -> float | None:
    """The seconds until the job is ended; None for one that is not, or whose time does not count now."""
    return next((max(0.0, each.end - now) for each in deadlines(job, launcher) if each.ends_job), None)


def in_words(job: JobLife, launcher: Launcher | None, now: float) -> str:
    """A line for the user about the time that the job has; empty where it has ended, or has no limit."""
    if job.over:
        return ""
    counting = deadlines(job, launcher)
    if not counting:
        limit = job.limit if launcher is None or launcher.owner != job.uid else launcher.limit
        if limit is None:
            return ""
        return f"its {duration.spell(limit)} count from the start of the launcher, and anew after each suspension"
    lines = []
    for each in counting:
        left = duration.spell(math.ceil(max(0.0, each.end - now)))
        what = f"is ended ({_FIELD})" if each.ends_job else f"has used what it asked for ({TIMEOUT})"
        lines.append(f"{left} of {duration.spell(each.seconds)} left: at {_moment(each.end)} it {what}")
    return "; ".join(lines)


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
    if job.ended is not None and job.reason == DEADLINE_EXCEEDED and job.managed_here:
        limit = launcher.limit if launcher is not None and launcher.owner == job.uid else job.limit
        yield Notice(f"{job.uid}|over", IS_OVER, _over(limit)), job.ended, job.ended + TOLD_FOR


def _near(deadline: Deadline) -> str:
    return (
        f"80 % of the {duration.spell(deadline.seconds)} that this job may take ({_FIELD}) are over. It is ended at "
        f"{_moment(deadline.end)} and has failed then, however far it has come: let it save a checkpoint. "
        f"The next one gets more time by the annotation {TIMEOUT}."
    )


def _asked(deadline: Deadline, hard: Deadline | None, what: str) -> str:
    end = "" if hard is None else f" until {_moment(hard.end)}, when it is ended ({_FIELD})"
    over = "are over" if what == "The" else f"are over, and all of them at {_moment(deadline.end)}"
    return (
        f"{what} {duration.spell(deadline.seconds)} of {TIMEOUT} {over}. The job goes on{end}, by "
        f"{TIMEOUT_ACTION}: {NOTIFY_ONLY}. Look whether it still makes progress, and delete it if it does not."
    )


def _over(limit: int | None) -> str:
    taken = "the time that it may take" if limit is None else f"the {duration.spell(limit)} that it may take"
    return (
        f"This job was ended after {taken} ({_FIELD}), and has failed. Its pods' logs say how far it came. "
        f"For more time set the annotation {TIMEOUT}, and create it again."
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(math.ceil(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
