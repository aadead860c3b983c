"""The settings for gang scheduling can be met.

The operator's flag `--gang-scheduling` names the scheduler for gangs. A job does not show the flag, so repeat its value
in the setting `scheduler`. With gang scheduling, no pod of a job is bound before `minAvailable` pods exist (default:
all workers and the launcher). The pods wait for ever if `minAvailable` is above their number. With
`WaitForWorkersReady` they also wait for ever if `minAvailable` is unset or above the number of workers: the operator
creates the launcher only when the workers run (kubeflow/mpi-operator#608). If the setting `scheduler` is empty, these
faults are warnings, because without the flag the operator ignores `schedulingPolicy`.

The following faults are warnings, because the job runs nevertheless:

* `schedulingPolicy`, if neither Volcano nor the coscheduling plugin is installed and the job is in no queue of Kueue;
* fields that the scheduler does not read;
* `WaitForWorkersReady` on a job in a queue: the operator creates the launcher at once (kubeflow/mpi-operator#615);
* two schedulers: queues of Volcano and Kueue, a coscheduling PodGroup and a queue, or different schedulers for launcher
  and workers if the operator does not set the scheduler.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.api import annotations, sshd
from webhook.api.kueue import QUEUE_NAME, queue_names
from webhook.api.mpijob import LAUNCHER, WAIT_FOR_WORKERS, WORKER, MPIJob, SchedulingPolicy, replica_path
from webhook.cluster.resources.coscheduling_groups import COSCHEDULING_GROUPS
from webhook.cluster.resources.volcano_queues import VOLCANO_QUEUES
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import ObjectName, RuleSettings
from webhook.predict import volcano
from webhook.predict.kueue.managed import manages
from webhook.predict.sizes import Sizes
from webhook.rules import CauseReason, Degree, Violation, rule, shortened

MIN_AVAILABLE = f"{volcano.POLICY}.minAvailable"
TIMEOUT = f"{volcano.POLICY}.scheduleTimeoutSeconds"
LAUNCHER_CREATION = "spec.launcherCreationPolicy"
VOLCANO = "volcano"
# The scheduler of pods without `schedulerName`.
DEFAULT_SCHEDULER = "default-scheduler"
# The coscheduling plugin's label for the pods of a gang (scheduler-plugins `apis/scheduling/v1alpha1`).
POD_GROUP = "scheduling.x-k8s.io/pod-group"
REPLACED = "the operator replaces it"


class Settings(RuleSettings):
    """The operator's flag, and how long a gang may wait."""

    scheduler: ObjectName = Field(
        "",
        description="The value of the operator's flag --gang-scheduling: volcano, or the name of a scheduler with the "
        "coscheduling plugin; empty if the flag is unknown or off.",
    )
    max_schedule_timeout_seconds: int | None = Field(None, ge=1, description="Maximum scheduleTimeoutSeconds of a job.")


@rule("gang", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    policy = job.run_policy.scheduling_policy or SchedulingPolicy()
    waits = job.spec.launcher_creation_policy == WAIT_FOR_WORKERS and job.workers > 0
    # A launcher that was created while its job was suspended still exists when the job resumes.
    queued = _queued(job) or (ctx.old is not None and _queued(ctx.old))
    unread, queued_by_kueue = _is_unread(job, settings, ctx), QUEUE_NAME in job.labels
    if unread and not queued_by_kueue and policy != SchedulingPolicy():
        other = "use a queue of Kueue" if manages(ctx.view, ctx.namespace) is True else "ask for one"
        fault = "has no effect: no gang scheduler is installed"
        yield Violation(volcano.POLICY, fault, fix=f"Remove it, or {other}.", advisory=True)
    elif settings.scheduler or job.run_policy.scheduling_policy is not None:
        yield from _min_available(job, policy.min_available, settings, ctx, waits=waits and not queued)
    if policy.schedule_timeout_seconds is not None:
        yield from _timeout(policy.schedule_timeout_seconds, settings, unread=unread and queued_by_kueue)
    yield from _queues(job, settings, ctx)
    yield from _pod_groups(job, settings)
    yield from _replaced_schedulers(job, settings.scheduler) if settings.scheduler else _two_schedulers(job)
    if waits and queued and not _launcher_waits(job):
        fix = f'Annotate {annotations.WORKER_READINESS}: "true".'
        yield Violation(LAUNCHER_CREATION, "has no effect in a queue", fix=fix, advisory=True)


def _is_unread(job: MPIJob, settings: Settings, ctx: Context) -> bool:
    if settings.scheduler:
        return False
    named = (replica.template.spec and replica.template.spec.scheduler_name for _, _, replica in job.replicas)
    if not {*named} <= {None, "", DEFAULT_SCHEDULER}:
        return False
    return ctx.view.not_served(VOLCANO_QUEUES) and ctx.view.not_served(COSCHEDULING_GROUPS)


def _launcher_waits(job: MPIJob) -> bool:
    init_containers = job.launcher.template.init_containers if job.launcher else ()
    return any(container.name == sshd.WAIT_CONTAINER for container in init_containers)


def _queued(job: MPIJob) -> bool:
    return job.suspended or QUEUE_NAME in job.labels


def _min_available(
    job: MPIJob, requested: int | None, settings: Settings, ctx: Context, *, waits: bool
) -> Iterator[Violation]:
    """`waits` is True if the operator creates the launcher only when all workers run.

    Workers above the admitted maximum are not counted.
    """
    admitted = Sizes.of(job, ctx).replicas(gpus=0)
    too_many = admitted.most is not None and not admitted.empty and job.workers > admitted.most
    workers = admitted.most if too_many and admitted.most is not None else job.workers
    pods = workers + 1
    most, advisory = workers if waits else pods, not settings.scheduler
    if requested is None:
        if waits:
            fault, fix = f"unset means {pods}, but the launcher waits for workers", f"Set it to {most}."
            degree = Degree("unset", 0)
            yield Violation(MIN_AVAILABLE, fault, fix, CauseReason.REQUIRED, advisory=advisory, degree=degree)
    elif requested < 0:
        degree = Degree("negative", -requested)
        fault = f"is {requested}, must not be negative"
        yield Violation(MIN_AVAILABLE, fault, fix=f"Set it to {most}.", advisory=advisory, degree=degree)
    elif requested > most:
        limit = (
            f"the job {'may have' if too_many else 'has'} {pods}"
            if requested > pods
            else f"the launcher waits for {most} workers"
        )
        fix, degree = f"Set it to {most} or fewer.", Degree("too many", requested - most)
        yield Violation(MIN_AVAILABLE, f"{requested} pods, but {limit}", fix=fix, advisory=advisory, degree=degree)
    elif requested == 0:
        yield Violation(MIN_AVAILABLE, "0 turns gang scheduling off", fix=f"Set it to {most}.", advisory=True)


def _timeout(seconds: int, settings: Settings, *, unread: bool) -> Iterator[Violation]:
    longest = settings.max_schedule_timeout_seconds
    if seconds < 0:
        yield Violation(TIMEOUT, f"is {seconds}, must not be negative", fix="Use 0 or more.")
    elif settings.scheduler == VOLCANO or unread:
        fault = f"{'Kueue' if unread else 'Volcano'} does not read it"
        yield Violation(TIMEOUT, fault, fix="Remove it.", advisory=True)
    elif longest is not None and seconds > longest:
        fault, degree = f"{seconds} seconds, at most {longest} allowed", Degree("timeout", seconds)
        yield Violation(TIMEOUT, fault, fix=f"Set it to {longest} or less.", degree=degree)


def _queues(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    path, queue = volcano.queue_of(job)
    if not queue:
        return
    if queue_names(job.labels) and not ctx.view.not_served(VOLCANO_QUEUES):
        yield Violation(path, "Kueue queues the job too", fix="Remove one of the two.", advisory=True)
    elif settings.scheduler not in {"", VOLCANO}:
        yield Violation(path, "only Volcano reads it", fix=f"Remove it; Kueue reads {QUEUE_NAME}.", advisory=True)


def _pod_groups(job: MPIJob, settings: Settings) -> Iterator[Violation]:
    other = "Kueue" if QUEUE_NAME in job.labels else "Volcano" if volcano.queue_of(job)[1] else ""
    for _, path, replica in job.replicas:
        if POD_GROUP not in replica.template.labels:
            continue
        field = f"{path}.template.metadata.labels[{POD_GROUP}]"
        if settings.scheduler == VOLCANO:
            yield Violation(field, "Volcano does not read it", fix="Remove it.", advisory=True)
        elif settings.scheduler:
            yield Violation(field, REPLACED, fix="Remove it.", advisory=True)
        elif other:
            yield Violation(field, f"{other} queues the job too", fix="Remove one of the two.", advisory=True)


def _replaced_schedulers(job: MPIJob, scheduler: str) -> Iterator[Violation]:
    for _, path, replica in job.replicas:
        pod = replica.template.spec
        if pod is not None and pod.scheduler_name and pod.scheduler_name != scheduler:
            yield Violation(f"{path}.template.spec.schedulerName", REPLACED, fix="Remove it.", advisory=True)


def _two_schedulers(job: MPIJob) -> Iterator[Violation]:
    """Two schedulers do not see each other's pods."""
    named = {
        role: (replica.template.spec and replica.template.spec.scheduler_name) or DEFAULT_SCHEDULER
        for role, _, replica in job.replicas
    }
    if len(set(named.values())) < 2:
        return
    role, other = (LAUNCHER, WORKER) if named[WORKER] != DEFAULT_SCHEDULER else (WORKER, LAUNCHER)
    yield Violation(
        f"{replica_path(role)}.template.spec.schedulerName",
        f"is not the {other.lower()}'s",
        fix=f"Set it to {shortened(named[other], 63)}.",
        advisory=True,
    )
