"""The whole job, launcher and workers, fits into the unused part of the namespace's ResourceQuotas.

A ResourceQuota rejects pods one by one: half of a job would run, hold its resources, and wait for the other half. This
rule adds up all pods of the job, with the claims and other objects that are created for them, for every quota whose
scopes match. The used part of a quota includes the amounts that other admitted jobs will still use.

A job that needs more than a whole quota never fits, and is rejected. A job that needs more than the unused part is
rejected too. Two kinds of jobs wait instead and get a warning: suspended jobs, and jobs in a queue that Kueue manages
and that accepts jobs. If a quota limits CPU or memory, a job whose pods do not state these amounts is rejected: the API
server would reject the pods.

For an update only the additional use is charged. Jobs that have ended, jobs that the operator rejects, and pods in
another cluster (MultiKueue) use no quota. OpenShift's ClusterResourceQuotas are treated as quotas of each namespace
that they select, without the amounts that admitted jobs of other namespaces will still use.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from webhook.api.accelerators import DEFAULT_ACCELERATORS, DEVICES_OF_CLASS, is_accelerator
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, replica_path
from webhook.api.quantity import Quantity
from webhook.cluster.resources.local_queues import LOCAL_QUEUES, LocalQueue
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import ResourceNames, RuleSettings
from webhook.predict.kueue.managed import framework, manages
from webhook.predict.kueue.queues import fault
from webhook.predict.quota import wording
from webhook.predict.quota.assessment import Assessment, assess, reservation_of
from webhook.predict.quota.fit import Shortage, charged
from webhook.predict.sizes import Size
from webhook.rules import CauseReason, Violation, number_of, rule
from webhook.rules.gpus import uncounted
from webhook.rules.limits import MAX_NAMED_QUOTAS, MAX_QUOTA_WARNINGS

SUSPEND: Final = "spec.runPolicy.suspend"


class Settings(RuleSettings):
    """The resources that messages call GPUs."""

    accelerators: ResourceNames = Field(
        DEFAULT_ACCELERATORS,
        description="Names of resources that messages call GPUs; `*` in a name matches any text.",
    )


@rule("resource-quota", Settings, since="0.1", importance=Importance.FAILS, reserves=reservation_of)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    assessment = assess(job, ctx)
    if assessment is None:
        return
    yield from _unstated(assessment)
    short = assessment.shortages()
    if not short:
        yield from _uncounted(assessment, ctx)
        return
    short.sort(key=lambda shortage: _urgency(shortage, assessment, settings))
    first, fits = short[0], assessment.largest_now(short)
    path = _path(job, ctx)
    queued = _queued(job, ctx)
    if not first.impossible and (job.suspended or queued):
        wait = "It waits" if queued or job.labels.get(QUEUE_NAME) else "Resume it later"
        fix = f"{wait}{_fitting(fits, assessment)}."
        for shortage in short[:MAX_QUOTA_WARNINGS]:
            yield _busy(path, shortage, fix, settings)
        return
    yield Violation(
        path,
        wording.details(
            short,
            assessment.demand,
            settings.accelerators,
            running=assessment.jobs_using(first),
            several=len(assessment.quotas) > 1,
        ),
        of_lines=True,
        follows=assessment.sizes.workers_field(fits),
        fix=wording.numbered(_suggestions(short, assessment, fits, settings)),
        reason=CauseReason.FORBIDDEN,
    )


def _uncounted(assessment: Assessment, ctx: Context) -> Iterator[Violation]:
    if any(resource.endswith(DEVICES_OF_CLASS) for quota in assessment.quotas for resource in quota.hard):
        for pods in assessment.pods:
            yield from uncounted(pods.path, pods.template, None, ctx)


def _queued(job: MPIJob, ctx: Context) -> bool:
    """Whether Kueue certainly keeps the job suspended until it fits.

    The label alone is not enough, because Kueue may not manage the job. A job with an owner does not count: any user
    can name an owner, and Kueue starts the job at once if Kueue manages the owner (kueue `pkg/controller/jobframework`,
    `ApplyDefaultForSuspend`).
    """
    name = job.labels.get(QUEUE_NAME)
    if not name or job.owned or manages(ctx.view, ctx.namespace, framework(job)) is not True:
        return False
    queue = ctx.view.get(LOCAL_QUEUES, (ctx.namespace, name))
    return isinstance(queue, LocalQueue) and fault(ctx.view, ctx.namespace, name) is None


def _urgency(short: Shortage, assessment: Assessment, settings: Settings) -> tuple[bool, bool, int, str]:
    """A sort key: permanent shortages first, then accelerators, then quotas that admit the fewest workers."""
    accelerator = is_accelerator(short.resource.removeprefix("requests."), settings.accelerators)
    return not short.impossible, not accelerator, assessment.most_workers(short.quota), short.resource


def _path(job: MPIJob, ctx: Context) -> str:
    """`suspend` if the update resumes the job, else the replicas of workers, or the launcher if there is no Worker."""
    if ctx.old is not None and ctx.old.suspended and not job.suspended:
        return SUSPEND
    return f"{replica_path(WORKER)}.replicas" if job.worker is not None else replica_path(LAUNCHER)


def _fitting(fits: Size | None, assessment: Assessment) -> str:
    if fits is None:
        return ""
    if fits.gpus == assessment.sizes.own.gpus:
        return f"; {fits.workers} {'worker fits' if fits.workers == 1 else 'workers fit'} now"
    return f"; {fits.workers} with {number_of(fits.gpus, 'GPU')} fit now"


def _busy(path: str, short: Shortage, fix: str, settings: Settings) -> Violation:
    needed = wording.spelled(short.resource, short.missing, settings.accelerators)
    available, hard = (
        wording.number(short.resource, amount, settings.accelerators) for amount in (short.available, short.hard)
    )
    return Violation(path, f"needs {needed}, {available} of {hard} free", fix, CauseReason.FORBIDDEN, advisory=True)


def _suggestions(
    shortages: list[Shortage], assessment: Assessment, fits: Size | None, settings: Settings
) -> Iterator[str]:
    short = shortages[0]
    fits_ever = assessment.largest_ever(shortages) if short.impossible else assessment.sizes.own
    in_use = short.taken > 0
    if fits:
        yield _reduce(fits, short, assessment, settings)
    elif short.impossible and fits_ever and in_use:
        yield f"{_reduce(fits_ever, short, assessment, settings)}, and wait for existing jobs to complete"
    if in_use and fits_ever not in {None, fits} and (fits or not short.impossible):
        yield "Wait for existing jobs to complete"
    fewest = assessment.sizes.replicas().least
    if fits_ever is None and 1 < fewest <= assessment.sizes.own.workers:
        yield f"Request quota increase from administrator: {fewest} workers, the fewest allowed here, do not fit"
    else:
        yield "Request quota increase from administrator"


def _reduce(size: Size, short: Shortage, assessment: Assessment, settings: Settings) -> str:
    total = charged(short.quota, assessment.resized(size).whole).get(short.resource, Quantity(0))
    spelled = wording.spelled(short.resource, total, settings.accelerators)
    return f"Reduce {assessment.sizes.in_words(size)} ({spelled} total)"


def _unstated(assessment: Assessment) -> Iterator[Violation]:
    for pods, part in zip(assessment.pods, assessment.demand.parts, strict=True):
        containers = pods.resources.containers
        counting = [quota for quota in assessment.quotas if pods.certain and quota.counts(part.charges[0].traits)]
        rejecting = [(quota.name, unstated) for quota in counting if (unstated := quota.unstated(pods.resources))]
        if not rejecting:
            continue
        missing = {resource: indices for _, unstated in rejecting for resource, indices in unstated.items()}
        named = "; ".join(
            f"{resource} for: {','.join(sorted({containers[index].name for index in indices}))}"
            for resource, indices in sorted(missing.items())
        )
        first = min(index for indices in missing.values() for index in indices)
        fields = dict.fromkeys(
            f"resources.{resource if '.' in resource else f'requests.{resource}'}" for resource in sorted(missing)
        )
        quotas = ", ".join(f'"{name}"' for name, _ in rejecting[:MAX_NAMED_QUOTAS])
        if len(rejecting) > MAX_NAMED_QUOTAS:
            quotas += f" and {len(rejecting) - MAX_NAMED_QUOTAS} more"
        yield Violation(
            f"{pods.path}.template.{containers[first].path}.resources",
            f"must specify {named} (quota{'s' if len(rejecting) > 1 else ''} {quotas})",
            fix=f"Set {' and '.join(fields)}, or the API server rejects every {part.role.lower()} pod.",
            reason=CauseReason.REQUIRED,
        )
