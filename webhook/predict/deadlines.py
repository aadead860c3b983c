"""The time limits of a running job. At a limit, the job is terminated or its users are notified.

The launcher's Job has the limit (`activeDeadlineSeconds`) and the start (`startTime`, reset by each resume). The
operator does not copy a later change of the MPIJob to the Job (kubernetes `pkg/controller/job/job_controller.go`). With
`timeout-action: notify-only` the annotation `timeout` has a second limit, which does not end the job.
"""

import math
from datetime import UTC, datetime
from typing import Final

import msgspec

from webhook.api import duration
from webhook.api.annotations import TIMEOUT
from webhook.cluster.job_lives import JobLife, Launcher

NEAR: Final = 0.8
FIELD: Final = "activeDeadlineSeconds"


class Deadline(msgspec.Struct, frozen=True):
    """A time limit of a job. `started` is in seconds since 1970."""

    seconds: int
    started: float
    ends_job: bool
    """False if users are only notified."""

    @property
    def near(self) -> float:
        return self.started + NEAR * self.seconds

    @property
    def end(self) -> float:
        return self.started + self.seconds


def deadlines(job: JobLife, launcher: Launcher | None) -> list[Deadline]:
    """The current limits, the earliest first; empty if the job is suspended or has ended."""
    if launcher is None or launcher.owner != job.uid or launcher.started is None:
        return []
    if launcher.suspended or launcher.ended or job.over or job.leaving or not job.managed_here:
        return []
    # Some clocks cannot represent a limit of more than 68 years.
    limit = launcher.limit if launcher.limit is not None and launcher.limit <= duration.MAX_SECONDS else None
    current = [Deadline(limit, launcher.started, ends_job=True)] if limit is not None else []
    if job.notify_after is not None and (limit is None or job.notify_after < limit):
        current.insert(0, Deadline(job.notify_after, launcher.started, ends_job=False))
    return current


def remaining(job: JobLife, launcher: Launcher | None, now: float) -> float | None:
    """The seconds until the job is terminated; None if no limit currently applies to it."""
    return next((max(0.0, deadline.end - now) for deadline in deadlines(job, launcher) if deadline.ends_job), None)


def in_words(job: JobLife, launcher: Launcher | None, now: float) -> str:
    """The job's remaining time, as a line for the user; empty if the job has ended or has no limit."""
    if job.over:
        return ""
    current = deadlines(job, launcher)
    if not current:
        limit = job.limit if launcher is None or launcher.owner != job.uid else launcher.limit
        if limit is None:
            return ""
        return f"its limit of {duration.spell(limit)} starts with the launcher, and again after each suspension"
    lines = []
    for deadline in current:
        left = duration.spell(math.ceil(max(0.0, deadline.end - now)))
        effect = f"is terminated ({FIELD})" if deadline.ends_job else f"has used its requested time ({TIMEOUT})"
        lines.append(f"{left} of {duration.spell(deadline.seconds)} left: at {moment(deadline.end)} it {effect}")
    return "; ".join(lines)


def moment(seconds: float) -> str:
    """The first whole second at or after `seconds`, as RFC 3339 in UTC."""
    return datetime.fromtimestamp(math.ceil(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
