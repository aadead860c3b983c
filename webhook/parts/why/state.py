"""The state of a job, from the job's and its pods' status."""

from datetime import datetime
from enum import StrEnum

import msgspec

from webhook.cluster import job_lives
from webhook.parts.why import loose
from webhook.parts.why.sight import Sight, span
from webhook.predict import deadlines


class State(StrEnum):
    """A job's state."""

    STARTS = "starting"
    """No problem is visible yet."""
    STUCK = "stuck"
    RUNS = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


def state(sight: Sight) -> tuple[State, str]:
    """The state, and a description as a sentence without a subject."""
    if sight.finished == "Succeeded":
        return State.SUCCEEDED, f"succeeded{_after(sight)}"
    if sight.finished == "Failed":
        return State.FAILED, f"failed{_after(sight)}"
    workers = f"{sight.ready_workers} of {sight.requested_workers} workers ready"
    begun = loose.moment(loose.condition(sight.job, "Running"), "lastTransitionTime")
    if loose.holds(sight.job, "Running") and not sight.suspended:
        since = f" since {_shown(begun)} ({sight.since(begun)})" if begun else ""
        left = _time_left(sight)
        return State.RUNS, f"runs{since}, {workers}{left and '; '}{left}"
    return State.STARTS, f"is being started, {workers}"


def _time_left(sight: Sight) -> str:
    try:
        life = job_lives.job_life(msgspec.json.encode(sight.job))
        launcher = job_lives.launcher(msgspec.json.encode(sight.launcher)) if sight.launcher else None
    except ValueError:  # the base class of msgspec's errors
        return ""
    return deadlines.in_words(life, launcher, sight.now.timestamp())


def _after(sight: Sight) -> str:
    start = loose.moment(sight.job, "status", "startTime")
    end = loose.moment(sight.job, "status", "completionTime")
    if end is None:
        return ""
    return f" at {_shown(end)}" + (f", after {span(start, end)}" if start else "")


def _shown(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S}Z"
