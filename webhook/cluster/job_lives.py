"""Records of the progress of MPIJobs and their launchers, for controllers and `why`.

These records are not in `resources`: a job's status changes often, and must not make cached verdicts invalid.
"""

import sys
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from webhook.api import duration
from webhook.api.annotations import CREATED_BY, NOTIFY_ONLY, TIMEOUT, TIMEOUT_ACTION
from webhook.api.duration import DurationError
from webhook.api.mpijob import is_managed_here
from webhook.cluster.limits import MAX_ANNOTATION_CHARACTERS
from webhook.cluster.owned import OwnedMetadata
from webhook.cluster.resource import ByNamespace, Metadata
from webhook.cluster.resources.jobs import LAUNCHER_SUFFIX
from webhook.cluster.resources.mpijobs import MPI_JOBS

DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
OTHER: Final = "other"
REASONS: Final = (DEADLINE_EXCEEDED, "BackoffLimitExceeded", "MPIJobEvicted", "MPIJobFailed", OTHER)
"""The operator's reasons for failed jobs. A metric has them as values of a label."""


class Phase(StrEnum):
    """The progress of a job."""

    QUEUED = "queued"
    """The job is suspended or waits for pods."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class JobLife(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The progress of an MPIJob. Times are seconds since 1970."""

    namespace: str
    name: str
    uid: str
    created: float
    phase: Phase
    leaving: bool = False
    """Whether the job is being deleted."""
    suspended: bool = False
    started: float | None = None
    """The time of the last start or resume. A suspended job keeps this time."""
    running_since: float | None = None
    ended: float | None = None
    reason: str = ""
    """The reason for the failure, one of REASONS."""
    limit: int | None = None
    """`activeDeadlineSeconds` of the job. The effective limit is in the launcher's Job."""
    notify_after: int | None = None
    """Seconds until a notice, for a job with `timeout-action: notify-only`."""
    managed_here: bool = True
    created_by: str = ""
    """The user who created the job, cut to `MAX_ANNOTATION_CHARACTERS`; empty without the annotation."""

    @property
    def over(self) -> bool:
        return self.phase in {Phase.SUCCEEDED, Phase.FAILED}


class Launcher(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The Job of Kubernetes that runs the launcher of an MPIJob."""

    owner: str
    """The uid of the MPIJob."""
    started: float | None = None
    """The time from which the limit counts. A resumed Job has a new time."""
    limit: int | None = None
    suspended: bool = False
    ended: bool = False


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = None


class _Annotations(msgspec.Struct):
    timeout: str | None = msgspec.field(default=None, name=TIMEOUT)
    action: str | None = msgspec.field(default=None, name=TIMEOUT_ACTION)
    created_by: str = msgspec.field(default="", name=CREATED_BY)


class _Metadata(Metadata):
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    annotations: _Annotations | None = None


class _RunPolicy(msgspec.Struct, rename="camel"):
    suspend: bool | None = None
    managed_by: str | None = None
    active_deadline_seconds: int | None = None


class _Spec(msgspec.Struct, rename="camel"):
    run_policy: _RunPolicy | None = None


class _Status(msgspec.Struct, rename="camel"):
    conditions: list[_Condition] | None = None
    start_time: str | None = None
    completion_time: str | None = None

    def true(self, kind: str) -> _Condition | None:
        """The condition of this type, if its status is True."""
        for condition in self.conditions or ():
            if condition.type == kind and condition.status == "True":
                return condition
        return None


class _MPIJob(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None


class _JobSpec(msgspec.Struct, rename="camel"):
    suspend: bool | None = None
    active_deadline_seconds: int | None = None


class _Job(msgspec.Struct):
    metadata: OwnedMetadata
    spec: _JobSpec | None = None
    status: _Status | None = None


_mpi_jobs = msgspec.json.Decoder(_MPIJob)
_jobs = msgspec.json.Decoder(_Job)


def job_life(data: bytes | msgspec.Raw) -> JobLife:
    """The progress of an MPIJob in JSON; msgspec.DecodeError or ValueError if it cannot be read."""
    job = _mpi_jobs.decode(data)
    metadata, status = job.metadata, job.status or _Status()
    policy = (job.spec or _Spec()).run_policy or _RunPolicy()
    annotations = metadata.annotations or _Annotations()
    ended = _seconds(status.completion_time)
    failed, running = status.true("Failed"), status.true("Running")
    phase = Phase.QUEUED
    # A job with an evicted worker is Failed too, but the operator continues it. Only ended jobs have `completionTime`.
    if ended is not None and (failed or status.true("Succeeded")):
        phase = Phase.FAILED if failed else Phase.SUCCEEDED
    elif running and not policy.suspend:
        phase = Phase.RUNNING
    return JobLife(
        namespace=sys.intern(metadata.namespace),
        name=sys.intern(metadata.name),
        uid=sys.intern(metadata.uid),
        created=_seconds(metadata.creation_timestamp) or 0.0,
        phase=phase,
        leaving=metadata.deletion_timestamp is not None,
        suspended=bool(policy.suspend),
        started=_seconds(status.start_time),
        running_since=_seconds(running.last_transition_time) if running and phase is Phase.RUNNING else None,
        ended=ended if phase in {Phase.SUCCEEDED, Phase.FAILED} else None,
        reason=_reason(failed.reason) if failed and phase is Phase.FAILED else "",
        limit=policy.active_deadline_seconds,
        notify_after=_notify_after(annotations),
        managed_here=is_managed_here(policy.managed_by),
        created_by=sys.intern(annotations.created_by[:MAX_ANNOTATION_CHARACTERS]),
    )


def launcher(data: bytes | msgspec.Raw) -> Launcher | None:
    """The launcher in a Job's JSON; None if the Job is not a launcher; msgspec.DecodeError if the JSON is invalid."""
    job = _jobs.decode(data)
    owner = next((owner for owner in job.metadata.owner_references or () if owner.controller), None)
    if owner is None or owner.kind != MPI_JOBS.kind or not job.metadata.name.endswith(LAUNCHER_SUFFIX):
        return None
    spec, status = job.spec or _JobSpec(), job.status or _Status()
    return Launcher(
        owner=sys.intern(owner.uid),
        started=_seconds(status.start_time),
        limit=spec.active_deadline_seconds,
        # A resumed Job keeps the condition until it has a new startTime. The old startTime belongs to the previous run.
        suspended=bool(spec.suspend or status.true("Suspended")),
        ended=bool(status.true("Complete") or status.true("Failed")),
    )


def launcher_key(job: JobLife) -> ByNamespace:
    return job.namespace, sys.intern(job.name + LAUNCHER_SUFFIX)


def _notify_after(annotations: _Annotations) -> int | None:
    if annotations.action != NOTIFY_ONLY or annotations.timeout is None:
        return None
    try:
        return duration.parse(annotations.timeout)
    except DurationError:
        return None


def _reason(text: str) -> str:
    first = text.partition("/")[0]  # the operator appends the kubelet's reason: `BackoffLimitExceeded/Evicted`
    return first if first in REASONS else OTHER


def _seconds(moment: str | None) -> float | None:
    return datetime.fromisoformat(moment).timestamp() if moment else None
