"""The whole job, launcher and workers, fits into the unused part of the namespace's ResourceQuotas.

A ResourceQuota rejects pods one by one: half a gang would run, hold its resources, and wait for the rest. This rule
adds up all pods of the job, and the claims and other objects that are created for them, as the API server does, in
every quota of the namespace whose scopes they are in. It adds the quota in use and what other admitted jobs will still
use.

A job that needs more than a whole quota never fits, and is rejected. A job that fits the quota but not its unused part
is rejected as well, unless the job waits anyway: suspended, or in a queue that Kueue manages and that takes jobs. Such
a job gets a warning. The API server rejects a pod that does not state CPU or memory if a quota limits them, so such
a job is rejected too. On an update only the additional use is included. Jobs that have ended, jobs that the operator
rejects, and pods in another cluster (MultiKueue) use no quota.

OpenShift's ClusterResourceQuotas are treated as quotas of each namespace that they select. What admitted jobs of other
namespaces will still use of them is not included.
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
from webhook.predict.quota.assessment import Assessment, assess
from webhook.predict.quota.fit import Shortage, charged
from webhook.predict.sizes import Size
from webhook.rules import CauseReason, Violation, rule
from webhook.rules.gpus import uncounted
from webhook.rules.limits import MAX_NAMED_QUOTAS, MAX_QUOTA_WARNINGS

SUSPEND: Final = "spec.runPolicy.suspend"


class Settings(RuleSettings):
    """The resources that messages call GPUs."""

    accelerators: ResourceNames = Field(
        DEFAULT_ACCELERATORS,
        description="Resource names that messages call GPUs; `*` in a name matches any text.",
    )


@rule("resource-quota", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Amounts that pods do not state; then the most important quota, with the others listed."""
    found = assess(job, ctx)
    if found is None:
        return
    yield from _unstated(found)
    short = found.shortages()
    if not short:
        yield from _uncounted(found, ctx)
        return
    short.sort(key=lambda each: _urgency(each, found, settings))
    first, fits = short[0], found.largest_now(short)
    path = _path(job, ctx)
    queued = _queued(job, ctx)
    if not first.impossible and (job.suspended or queued):
        fitting, wait = _fitting(fits, found), "It waits" if queued or job.labels.get(QUEUE_NAME) else "Resume it later"
        for each in short[:MAX_QUOTA_WARNINGS]:
            yield _busy(path, each, fitting, settings, wait=wait)
        return
    yield Violation(
        path,
        wording.details(
            short,
            found.demand,
            settings.accelerators,
            running=found.jobs_using(first),
            several=len(found.quotas) > 1,
        ),
        of_lines=True,
        follows=found.sizes.workers_field(fits),
        fix=wording.numbered(_suggestions(short, found, fits, settings)),
        reason=CauseReason.FORBIDDEN,
    )


def _uncounted(found: Assessment, ctx: Context) -> Iterator[Violation]:
    """Claims with unknown devices, if a quota counts such."""
    if any(resource.endswith(DEVICES_OF_CLASS) for quota in found.quotas for resource in quota.hard):
        for pods in found.pods:
            yield from uncounted(pods.path, pods.template, None, ctx)


def _queued(job: MPIJob, ctx: Context) -> bool:
    """Whether Kueue provably holds the job back until there is room; a label proves nothing, because any user can write
    it.

    Nor does Kueue hold back a job with an owner that it manages (kueue `pkg/controller/jobframework`,
    `ApplyDefaultForSuspend`), and any user can name an owner.
    """
    name = job.labels.get(QUEUE_NAME)
    if not name or job.owned or manages(ctx.view, ctx.namespace, framework(job)) is not True:
        return False
    queue = ctx.view.get(LOCAL_QUEUES, (ctx.namespace, name))
    return isinstance(queue, LocalQueue) and fault(ctx.view, ctx.namespace, name) is None


def _urgency(short: Shortage, found: Assessment, settings: Settings) -> tuple[bool, bool, int, str]:
    """For sorting: what never fits first, then accelerators, then what leaves room for the fewest workers."""
    accelerator = is_accelerator(short.resource.removeprefix("requests."), settings.accelerators)
    return not short.impossible, not accelerator, found.most_workers(short.quota), short.resource


def _path(job: MPIJob, ctx: Context) -> str:
    """`spec.runPolicy.suspend` if the update resumes the job, else the number of workers."""
    if ctx.old is not None and ctx.old.suspended and not job.suspended:
        return SUSPEND
    return f"{replica_path(WORKER)}.replicas" if job.worker is not None else replica_path(LAUNCHER)


def _fitting(fits: Size | None, found: Assessment) -> str:
    """The size that would fit now; empty for none."""
    if fits is None:
        return ""
    if fits.gpus == found.sizes.own.gpus:
        return f"{fits.workers} {'worker fits' if fits.workers == 1 else 'workers fit'} now"
    return f"{fits.workers} with {fits.gpus} GPU{'' if fits.gpus == 1 else 's'} fit now"


def _busy(path: str, short: Shortage, fitting: str, settings: Settings, *, wait: str) -> Violation:
    """A message of one line, because it is a warning."""
    needed = wording.spelled(short.resource, short.missing, settings.accelerators)
    available, hard = (
        wording.number(short.resource, amount, settings.accelerators) for amount in (short.available, short.hard)
    )
    return Violation(
        path,
        f"needs {needed}, {available} of {hard} free",
        fix=f"{wait}; {fitting}." if fitting else f"{wait}.",
        reason=CauseReason.FORBIDDEN,
        advisory=True,
    )


def _suggestions(every: list[Shortage], found: Assessment, fits: Size | None, settings: Settings) -> Iterator[str]:
    """A smaller size that all rules admit and that fits now, else once other jobs are done; to wait, if that helps; to
    request a larger quota.
    """
    short = every[0]
    ever = found.largest_ever(every) if short.impossible else found.sizes.own
    in_use = short.taken > 0
    if fits:
        yield _reduce(fits, short, found, settings)
    elif short.impossible and ever and in_use:
        yield f"{_reduce(ever, short, found, settings)}, and wait for existing jobs to complete"
    if in_use and ever not in {None, fits} and (fits or not short.impossible):
        yield "Wait for existing jobs to complete"
    fewest = found.sizes.replicas().least
    if ever is None and 1 < fewest <= found.sizes.own.workers:
        yield f"Request quota increase from administrator: {fewest} workers, the fewest allowed here, do not fit"
    else:
        yield "Request quota increase from administrator"


def _reduce(size: Size, short: Shortage, found: Assessment, settings: Settings) -> str:
    total = charged(short.quota, found.resized(size).whole).get(short.resource, Quantity(0))
    spelled = wording.spelled(short.resource, total, settings.accelerators)
    return f"Reduce {found.sizes.in_words(size)} ({spelled} total)"


def _unstated(found: Assessment) -> Iterator[Violation]:
    """The API server's own words, for all quotas that reject the pods of a role."""
    for pods, part in zip(found.pods, found.demand.parts, strict=True):
        containers = pods.resources.containers
        counting = [quota for quota in found.quotas if pods.certain and quota.counts(part.charges[0].traits)]
        refusing = [(quota.name, unstated) for quota in counting if (unstated := quota.unstated(pods.resources))]
        if not refusing:
            continue
        missing = {resource: indices for _, unstated in refusing for resource, indices in unstated.items()}
        named = "; ".join(
            f"{resource} for: {','.join(sorted({containers[index].name for index in indices}))}"
            for resource, indices in sorted(missing.items())
        )
        first = min(index for indices in missing.values() for index in indices)
        fields = dict.fromkeys(
            f"resources.{resource if '.' in resource else f'requests.{resource}'}" for resource in sorted(missing)
        )
        quotas = ", ".join(f'"{name}"' for name, _ in refusing[:MAX_NAMED_QUOTAS])
        if len(refusing) > MAX_NAMED_QUOTAS:
            quotas += f" and {len(refusing) - MAX_NAMED_QUOTAS} more"
        yield Violation(
            f"{pods.path}.template.{containers[first].path}.resources",
            f"must specify {named} (quota{'s' if len(refusing) > 1 else ''} {quotas})",
            fix=f"Set {' and '.join(fields)}, or the API server rejects every {part.role.lower()} pod.",
            reason=CauseReason.REQUIRED,
        )
