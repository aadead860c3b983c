"""The end of a job's time.

The launcher's Job has the clock, since its deadline ends the MPIJob. It counts `activeDeadlineSeconds` of that Job (a
later change of the MPIJob is not copied there) from its `startTime`, which each resume resets (kubernetes
`pkg/controller/job/job_controller.go`). With `timeout-action: notify-only` the same clock counts the seconds of the
annotation too, and nothing ends.
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
    """A limit of a launcher: seconds, and their start (since 1970)."""

    seconds: int
    started: float
    ends_job: bool
    """Whether the job ends then; otherwise users are only notified."""

    @property
    def near(self) -> float:
        return self.started + NEAR * self.seconds

    @property
    def end(self) -> float:
        return self.started + self.seconds


def deadlines(job: JobLife, launcher: Launcher | None) -> list[Deadline]:
    """The current limits, the earliest first; none while the job is suspended, or after it has ended.

    A limit of more than 68 years is left out: it is never reached, and not every clock can represent it.
    """
    if launcher is None or launcher.owner != job.uid or launcher.started is None:
        return []
    if launcher.suspended or launcher.ended or job.over or job.leaving or not job.managed_here:
        return []
    found = []
    limit = launcher.limit if launcher.limit is not None and launcher.limit <= duration.MAX_SECONDS else None
    if limit is not None:
        found.append(Deadline(limit, launcher.started, ends_job=True))
    if job.told_after is not None and (limit is None or job.told_after < limit):
        found.insert(0, Deadline(job.told_after, launcher.started, ends_job=False))
    return found


def remaining(job: JobLife, launcher: Launcher | None, now: float) -> float | None:
    """The seconds until the job is terminated; None if it has no limit, or no current one."""
    return next((max(0.0, each.end - now) for each in deadlines(job, launcher) if each.ends_job), None)


def in_words(job: JobLife, launcher: Launcher | None, now: float) -> str:
    """A line for the user about the job's remaining time; empty if it has ended, or has no limit."""
    if job.over:
        return ""
    counting = deadlines(job, launcher)
    if not counting:
        limit = job.limit if launcher is None or launcher.owner != job.uid else launcher.limit
        if limit is None:
            return ""
        return f"its {duration.spell(limit)} count from the start of the launcher, and again after each suspension"
    lines = []
    for each in counting:
        left = duration.spell(math.ceil(max(0.0, each.end - now)))
        what = f"is ended ({FIELD})" if each.ends_job else f"has used its requested time ({TIMEOUT})"
        lines.append(f"{left} of {duration.spell(each.seconds)} left: at {moment(each.end)} it {what}")
    return "; ".join(lines)


def moment(seconds: float) -> str:
    """The first whole second at or after it, as RFC 3339 in UTC."""
    return datetime.fromtimestamp(math.ceil(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
