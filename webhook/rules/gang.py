"""Gang scheduling asks for what can be fulfilled.

The operator's flag `--gang-scheduling` decides whether there is gang scheduling, and by which scheduler. A job does not
show it, so it is a setting (`scheduler`). With it on, no pod of a job is bound before `minAvailable` pods exist
(default: all workers and the launcher). More than there will ever be means waiting for ever. So does
`WaitForWorkersReady` with the default: the launcher is one of the pods, and it is created only when the workers run
(kubeflow/mpi-operator#608).

Warned about, since the rest of the job still runs: fields that this scheduler does not read, two queues at once
(Volcano's and Kueue's), and `WaitForWorkersReady` on a job that waits in a queue: the operator then creates the
launcher at once (kubeflow/mpi-operator#615).
"""

from collections.abc import Iterator

from pydantic import Field, field_validator

from webhook.api import names
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import VOLCANO_QUEUE, MPIJob, SchedulingPolicy
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.sizes import Sizes
from webhook.rules import CauseReason, Degree, Violation, rule

PATH = "spec.runPolicy.schedulingPolicy"
MIN_AVAILABLE = f"{PATH}.minAvailable"
TIMEOUT = f"{PATH}.scheduleTimeoutSeconds"
LAUNCHER_CREATION = "spec.launcherCreationPolicy"
WAIT_FOR_WORKERS = "WaitForWorkersReady"
VOLCANO = "volcano"


class Settings(RuleSettings):
    """What the operator runs with, and how long a gang may wait."""

    scheduler: str = Field(
        "",
        description="The value of the operator's flag --gang-scheduling: volcano, or the name of a scheduler with the "
        "coscheduling plugin; empty when it is not known, or off.",
    )
    max_schedule_timeout_seconds: int | None = Field(
        None, ge=1, description="Longest scheduleTimeoutSeconds that a job may ask for."
    )

    @field_validator("scheduler")
    @classmethod
    def _name(cls, scheduler: str) -> str:
        if scheduler and (problem := names.dns_1123_subdomain_problem(scheduler)):
            raise ValueError(problem)
        return scheduler


@rule("gang", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """minAvailable, the timeout, the queues, and what the scheduler or a queue makes void."""
    policy = job.run_policy.scheduling_policy or SchedulingPolicy()
    waits = job.spec.launcher_creation_policy == WAIT_FOR_WORKERS and job.workers > 0
    # A launcher that was created while its job was suspended is there when the job resumes.
    queued = _queued(job) or (ctx.old is not None and _queued(ctx.old))
    if settings.scheduler or job.run_policy.scheduling_policy is not None:
        yield from _min_available(job, policy.min_available, settings, ctx, waits=waits and not queued)
    if policy.schedule_timeout_seconds is not None:
        yield from _timeout(policy.schedule_timeout_seconds, settings)
    yield from _queues(job, policy.queue, settings)
    if settings.scheduler:
        yield from _scheduler_names(job, settings.scheduler)
    if waits and queued:
        fix = "Let the launcher itself wait for them."
        yield Violation(LAUNCHER_CREATION, "has no effect on suspended or queued jobs", fix=fix, advisory=True)


def _queued(job: MPIJob) -> bool:
    return job.suspended or QUEUE_NAME in job.labels


def _min_available(
    job: MPIJob, asked: int | None, settings: Settings, ctx: Context, *, waits: bool
) -> Iterator[Violation]:
    """`waits`: the launcher is created only when all workers run. Workers beyond what is admitted do not count."""
    admitted = Sizes.of(job, ctx).replicas(gpus=0)
    too_many = admitted.most is not None and not admitted.empty and job.workers > admitted.most
    workers = admitted.most if too_many and admitted.most is not None else job.workers
    pods = workers + 1
    most = workers if waits else pods
    if asked is None:
        if waits:
            yield Violation(
                MIN_AVAILABLE,
                f"unset means {pods}, but the launcher waits for workers",
                fix=f"Set it to {most}.",
                reason=CauseReason.REQUIRED,
                advisory=not settings.scheduler,
                degree=Degree("unset", 0),
            )
    elif asked < 0:
        degree = Degree("negative", -asked)
        yield Violation(MIN_AVAILABLE, f"is {asked}, must not be negative", fix=f"Set it to {most}.", degree=degree)
    elif asked > most:
        there = (
            f"the job {'may have' if too_many else 'has'} {pods}"
            if asked > pods
            else f"the launcher waits until all {most} workers run"
        )
        fix, degree = f"Set it to {most} or fewer.", Degree("too many", asked - most)
        yield Violation(MIN_AVAILABLE, f"{asked} pods, but {there}", fix=fix, degree=degree)
    elif asked == 0:
        yield Violation(MIN_AVAILABLE, "0 turns gang scheduling off", fix=f"Set it to {most}.", advisory=True)


def _timeout(seconds: int, settings: Settings) -> Iterator[Violation]:
    longest = settings.max_schedule_timeout_seconds
    if seconds < 0:
        yield Violation(TIMEOUT, f"is {seconds}, must not be negative", fix="Use 0 or more.")
    elif settings.scheduler == VOLCANO:
        yield Violation(TIMEOUT, "Volcano does not read it", fix="Remove it.", advisory=True)
    elif longest is not None and seconds > longest:
        fault, degree = f"{seconds} seconds, at most {longest} allowed", Degree("timeout", seconds)
        yield Violation(TIMEOUT, fault, fix=f"Set it to {longest} or less.", degree=degree)


def _queues(job: MPIJob, queue: str | None, settings: Settings) -> Iterator[Violation]:
    if not queue and not job.annotations.get(VOLCANO_QUEUE):
        return
    path = f"{PATH}.queue" if queue else f"metadata.annotations[{VOLCANO_QUEUE}]"
    if QUEUE_NAME in job.labels:
        yield Violation(path, "Kueue queues the job too", fix="Remove one of the two.", advisory=True)
    elif settings.scheduler not in {"", VOLCANO}:
        yield Violation(path, "only Volcano reads it", fix=f"Remove it; Kueue reads {QUEUE_NAME}.", advisory=True)


def _scheduler_names(job: MPIJob, scheduler: str) -> Iterator[Violation]:
    for _, path, replica in job.replicas():
        pod = replica.template.spec
        if pod is not None and pod.scheduler_name and pod.scheduler_name != scheduler:
            field = f"{path}.template.spec.schedulerName"
            yield Violation(field, "the operator replaces it", fix="Remove it.", advisory=True)
