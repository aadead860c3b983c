"""What is told about a job's time. Pure; when it is over: `webhook.predict.deadlines`.

A notice is due in a window after its moment, which is shorter than the hour for which an API server keeps Events: as
long as it is due, an Event with its name is still there, so that one which exists was told, and none is told twice. A
service that was away for less than the window loses none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.api import duration
from webhook.api.annotations import NOTIFY_ONLY, TIMEOUT, TIMEOUT_ACTION
from webhook.cluster.job_lives import DEADLINE_EXCEEDED, JobLife, Launcher
from webhook.predict.deadlines import FIELD, Deadline, deadlines, moment

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
