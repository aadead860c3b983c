"""The job can start in its queue of Volcano.

With `--gang-scheduling=volcano` (setting `gangScheduling`) the operator creates a PodGroup for every job, in the queue
`schedulingPolicy.queue`, else in the queue of the annotation `scheduling.volcano.sh/queue-name`, else in `default`. The
job does not show a problem with its queue. Volcano rejects a PodGroup whose queue does not exist or is not open. A
PodGroup that requests more than the queue's `capability` is Pending for ever.

A job is rejected if it never starts, for one of these reasons:

- its queue does not exist, or is closed;
- the job's request is above the `capability`. The request is `schedulingPolicy.minResources`, else the sum of its pods'
  requests;
- with the setting `hierarchy`: the queue has other queues below it, or the request is above the `capability` of a queue
  above it. While a job is in a queue that is not a leaf, Volcano schedules nothing at all.

A job that waits gets a warning: the free part of its queue is too small, or Volcano has not opened the queue yet. All
violations are warnings if the job is suspended, or if it names a queue while `gangScheduling` is off, which is the
default. Nothing is reported if Volcano is not installed, or if its queues cannot be read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from msgspec import structs
from pydantic import Field

from webhook.api import names, quantity
from webhook.api.mpijob import WORKER, MPIJob, replica_path
from webhook.api.pod_resources import Amounts
from webhook.api.quantity import Quantity
from webhook.cluster.resources.volcano_queues import CLOSED, DEFAULT, OPEN, VOLCANO_QUEUES, VolcanoQueue
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict import volcano
from webhook.predict.sizes import Sizes
from webhook.rules import CauseReason, Degree, Violation, rule, shortened
from webhook.rules.limits import MAX_QUEUE_NAME_CHARACTERS, MAX_SHOWN_QUEUES

MIN_RESOURCES = f"{volcano.POLICY}.minResources"
WORKERS = f"{replica_path(WORKER)}.replicas"


class Settings(RuleSettings):
    """The flags of the operator and of Volcano."""

    gang_scheduling: bool = Field(
        False, description="Whether the operator runs with --gang-scheduling=volcano. If not, nothing is rejected."
    )
    hierarchy: bool = Field(
        False,
        description="Whether Volcano's scheduler has the plugin capacity with enableHierarchy: true. If not, a problem "
        "with a queue above or below the job's queue is a warning.",
    )


@rule("volcano-queue", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    path, named = volcano.queue_of(job)
    if not job.managed_here or not (named or settings.gang_scheduling):
        return
    certain = settings.gang_scheduling and not job.suspended
    for violation in _found(job, path, named or DEFAULT, settings, ctx):
        yield violation if certain else replace(violation, advisory=True)


def _found(job: MPIJob, path: str, name: str, settings: Settings, ctx: Context) -> Iterator[Violation]:
    if problem := names.dns_1123_subdomain_problem(name):
        fix = names.advice(name, names.dns_1123_subdomain_problem)
        yield Violation(path, f'"{shortened(name, MAX_QUEUE_NAME_CHARACTERS)}" {problem}', fix=fix)
        return
    queue = ctx.view.get(VOLCANO_QUEUES, name)
    if queue is ABSENT:
        closest = _closest(name, ctx)
        fix = f"Use {closest.name}." if closest else _others(ctx.view)
        yield Violation(path, f"{_called(name)} does not exist", fix=fix, reason=CauseReason.NOT_SUPPORTED)
        if closest:  # reported now, not only when the user tries this queue
            yield from _too_small(job, closest, settings, ctx)
    elif queue is not UNKNOWN:
        yield from _closed(path, queue, ctx.view)
        yield from _not_a_leaf(path, queue, settings, ctx.view)
        yield from _too_small(job, queue, settings, ctx)


def _closest(name: str, ctx: Context) -> VolcanoQueue | None:
    queues = ctx.view.all(VOLCANO_QUEUES)
    if queues is UNKNOWN:
        return None
    closest = ctx.closest_name(name, lambda: sorted(queues))
    return queues[closest] if closest else None


def _others(view: ClusterView) -> str:
    others = volcano.open_leaves(view)[:MAX_SHOWN_QUEUES]
    return f"Use {' or '.join(others)}." if others else "Ask for a queue."


def _closed(path: str, queue: VolcanoQueue, view: ClusterView) -> Iterator[Violation]:
    if queue.state in CLOSED:
        message = f"{_called(queue.name)} is {queue.state}"
        yield Violation(path, message, fix=_others(view), reason=CauseReason.NOT_SUPPORTED)
    elif queue.state != OPEN:
        yield Violation(path, f"{_called(queue.name)} is not open yet", fix="It waits.", advisory=True)


def _not_a_leaf(path: str, queue: VolcanoQueue, settings: Settings, view: ClusterView) -> Iterator[Violation]:
    if below := volcano.children(view, queue.name):
        shown = ", ".join(below[:MAX_SHOWN_QUEUES])
        yield Violation(
            path,
            f"{_called(queue.name)} has queues below it",
            fix=f"Use {'one of ' if len(below) > 1 else ''}{shown}.",
            reason=CauseReason.NOT_SUPPORTED,
            advisory=not settings.hierarchy,
        )


def _too_small(job: MPIJob, queue: VolcanoQueue, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Reports the first queue, from the job's queue upwards, whose capability is too small.

    If there is none, reports the first queue whose free part is too small.
    """
    request, above = volcano.min_resources(job, ctx), [*volcano.ancestors(ctx.view, queue)]
    for limiting in (queue, *above):
        if beyond := _beyond(request, limiting.capability):
            certain = limiting is queue or settings.hierarchy
            holding = [queue, *above] if settings.hierarchy else [queue]
            yield _never(job, limiting, beyond, request, _fix(job, holding, ctx), advisory=not certain)
            return
    if ctx.old is not None and not (ctx.old.suspended and not job.suspended):
        return  # the stored job may be using the capacity
    for limiting in (queue, *above) if settings.hierarchy else (queue,):
        free = {name: Quantity(most - limiting.allocated.get(name, 0)) for name, most in limiting.capability.items()}
        if beyond := _beyond(request, free):
            resource = _worst(beyond, free)
            left, needs = (quantity.format(amounts[resource]) for amounts in (free, request))
            message = f"needs {needs} {resource}, {_called(limiting.name)} has {left} free"
            yield Violation(_path(job), message, "It waits.", CauseReason.FORBIDDEN, advisory=True)
            return


def _never(
    job: MPIJob, queue: VolcanoQueue, beyond: Mapping[str, int], request: Amounts, fix: str, *, advisory: bool
) -> Violation:
    resource = _worst(beyond, queue.capability)
    most, needs = (quantity.format(amounts[resource]) for amounts in (queue.capability, request))
    return Violation(
        _path(job),
        f"needs {needs} {resource}, {_called(queue.name)} can hold {most}",
        fix=fix,
        reason=CauseReason.FORBIDDEN,
        advisory=advisory,
        degree=Degree(queue.name, beyond),
    )


def _fix(job: MPIJob, queues: list[VolcanoQueue], ctx: Context) -> str:
    sizes = Sizes.of(job, ctx)
    if sizes.gang is None and sizes.waits:
        # The rule `gang` suggests to set minAvailable to the current number of workers.
        sizes = structs.replace(sizes, gang=sizes.own.workers + 1)
    size = sizes.largest(
        lambda size: not any(_beyond(volcano.min_resources(job, ctx, size), queue.capability) for queue in queues)
    )
    return "Request less." if size is None else f"Reduce {sizes.in_words(size)}."


def _beyond(request: Amounts, most: Amounts) -> dict[str, int]:
    """The excess of each resource above its limit."""
    return {name: amount - most[name] for name, amount in request.items() if name in most and amount > most[name]}


def _worst(beyond: Mapping[str, int], most: Amounts) -> str:
    """The resource with the largest missing part, relative to the request."""
    return max(sorted(beyond), key=lambda name: beyond[name] / (beyond[name] + max(most[name], 0)))


def _path(job: MPIJob) -> str:
    policy = job.run_policy.scheduling_policy
    if policy is not None and policy.min_resources is not None:
        return MIN_RESOURCES
    return WORKERS if job.worker is not None else "spec.mpiReplicaSpecs[Launcher]"


def _called(name: str) -> str:
    return f'queue "{shortened(name, MAX_QUEUE_NAME_CHARACTERS)}"'
