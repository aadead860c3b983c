"""When a job is terminated, or its users are notified, for running too long.

The launcher's Job is the clock, because its deadline ends the MPIJob. Time is measured from its `startTime`,
which each resume resets. The limit is the Job's `activeDeadlineSeconds`; a later change of the MPIJob is not copied to
the Job (kubernetes `pkg/controller/job/job_controller.go`). With `timeout-action: notify-only` the time in the
annotation `timeout` is measured by the same clock, but does not end the job.
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
    """A time limit of a launcher: its length, and its start in seconds since 1970."""

    seconds: int
    started: float
    ends_job: bool
    """Whether the job is terminated at the deadline; otherwise users are only notified."""

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
    # A limit of more than 68 years is never reached, and some clocks cannot represent it.
    limit = launcher.limit if launcher.limit is not None and launcher.limit <= duration.MAX_SECONDS else None
    current = [Deadline(limit, launcher.started, ends_job=True)] if limit is not None else []
    if job.notify_after is not None and (limit is None or job.notify_after < limit):
        current.insert(0, Deadline(job.notify_after, launcher.started, ends_job=False))
    return current


def remaining(job: JobLife, launcher: Launcher | None, now: float) -> float | None:
    """The seconds until the job is terminated; None if no limit currently applies to it."""
    return next((max(0.0, each.end - now) for each in deadlines(job, launcher) if each.ends_job), None)


def in_words(job: JobLife, launcher: Launcher | None, now: float) -> str:
    """A line for the user about the job's remaining time; empty if the job has ended or has no limit."""
    if job.over:
        return ""
    counting = deadlines(job, launcher)
    if not counting:
        limit = job.limit if launcher is None or launcher.owner != job.uid else launcher.limit
        if limit is None:
            return ""
        return f"its limit of {duration.spell(limit)} starts with the launcher, and again after each suspension"
    lines = []
    for each in counting:
        left = duration.spell(math.ceil(max(0.0, each.end - now)))
        what = f"is terminated ({FIELD})" if each.ends_job else f"has used its requested time ({TIMEOUT})"
        lines.append(f"{left} of {duration.spell(each.seconds)} left: at {moment(each.end)} it {what}")
    return "; ".join(lines)


def moment(seconds: float) -> str:
    """The first whole second at or after `seconds`, as RFC 3339 in UTC."""
    return datetime.fromtimestamp(math.ceil(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
