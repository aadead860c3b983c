"""The job's queue could admit the job if the queue were empty.

A job that Kueue can never admit waits for ever, and only the status of its Workload shows the reason. A job never fits
if

- its pods request a resource for which the ClusterQueue has no quota (`resource X unavailable in ClusterQueue`);
- no flavor matches the pods (`NoMatchingFlavor`): the pods do not tolerate the flavor's taint, they require a label
  that the flavor does not have, or only one of the two (pods and flavor) uses topology-aware scheduling;
- all flavors are topology-aware, and the launcher or the workers request no resource that the ClusterQueue covers
  (`no TAS flavor assigned`). A request of `0` avoids this;
- no matching flavor has enough quota, including all quota that the cohort could lend (`ExceedsMaxQuota`).

Requests are added up as Kueue does it: with the defaults of LimitRanges and the overhead of the RuntimeClass, without
the resources in `resources.excludeResourcePrefixes`. Nothing is reported if objects cannot be read, a cohort has a
cycle, or Kueue transforms a resource. Jobs for MultiKueue, with resource claims or with a prebuilt Workload are not
checked.

A violation is a warning, because quotas change. Its numbers are the numbers in Kueue's messages.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from msgspec.structs import replace

from webhook.api import kueue
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import WORKER, MPIJob
from webhook.cluster.resources.cluster_queues import ClusterQueue
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import WarningRuleSettings
from webhook.predict.kueue import queues, topology
from webhook.predict.kueue.feasibility import Obstacle, obstacles
from webhook.predict.kueue.flavors import Mismatch, TemplatePart
from webhook.predict.kueue.managed import configuration, framework, manages
from webhook.predict.kueue.pod_sets import PodSet, pod_sets
from webhook.predict.sizes import Size, Sizes, listed
from webhook.rules import CauseReason, Violation, number_of, rule
from webhook.rules.limits import MAX_QUEUES_TRIED

Fits = Callable[[ClusterQueue, tuple[PodSet, ...]], bool]


class Settings(WarningRuleSettings):
    """The action for a job that never fits."""


@rule("ever-fits", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    name = job.labels.get(QUEUE_NAME)
    queue = queues.cluster_queue(ctx.view, ctx.namespace, name) if name else None
    if queue is None:
        return
    config = configuration(ctx.view)
    if config is UNKNOWN or manages(ctx.view, ctx.namespace, framework(job)) is False:
        return
    sets = pod_sets(job, ctx, config)
    if sets is None:
        return
    all_obstacles = list(obstacles(ctx.view, queue, sets, config))
    if not all_obstacles:
        return

    def fits(queue: ClusterQueue, pods: tuple[PodSet, ...]) -> bool:
        # A missing request for a topology has its own fix, which works in every queue.
        return all(obstacle.of_topologies for obstacle in obstacles(ctx.view, queue, pods, config))

    elsewhere = _other_queue(ctx, name, sets, fits)
    sizes = Sizes.of(job, ctx)
    fits_so = elsewhere or all(obstacle.of_topologies for obstacle in all_obstacles)
    size = None if fits_so else sizes.largest(lambda size: fits(queue, _resized(sets, size, sizes)))
    for obstacle in all_obstacles:
        fix = (not obstacle.of_topologies and elsewhere) or _fix(
            obstacle, size, sizes, lambda pods: fits(queue, pods), sets
        )
        follows = sizes.workers_field(size)
        fault = _message(obstacle, queue)
        yield Violation(_path(obstacle), fault, fix=fix, reason=CauseReason.NOT_SUPPORTED, follows=follows)
    if (
        size is not None
        and (besides := sizes.besides(size))
        and all(obstacle.unavailable is None for obstacle in all_obstacles)
    ):
        yield Violation(
            "spec", f"other numbers change with {_in_words(size, sizes.own)}", fix=f"Set {listed(besides)}."
        )


def _path(obstacle: Obstacle) -> str:
    """The path of the mismatched part of the template, or of the role if there is not exactly one such part."""
    path = obstacle.pod_set.path
    parts = {mismatch.part for mismatch in obstacle.mismatches}
    if obstacle.shortages or len(parts) != 1:
        return path
    match parts.pop():
        case TemplatePart.TOLERATIONS:
            return f"{path}.template.spec.tolerations"
        case TemplatePart.NODE_SELECTOR:
            return f"{path}.template.spec.nodeSelector"
        case TemplatePart.NODE_AFFINITY:
            return f"{path}.template.spec.affinity.nodeAffinity"
        case TemplatePart.TOPOLOGY:
            annotations = obstacle.pod_set.template.annotations
            keys = (topology.REQUIRED, topology.PREFERRED, topology.SLICE, topology.UNCONSTRAINED)
            key = next((key for key in keys if key in annotations), "")
            return f"{path}.template.metadata.annotations[{key}]" if key else path


def _message(obstacle: Obstacle, queue: ClusterQueue) -> str:
    """Kueue's message for the flavor with the largest share of the request."""
    if obstacle.unavailable is not None:
        return f"resource {obstacle.unavailable} unavailable in ClusterQueue {queue.name}"
    if obstacle.several_topologies:
        return f"{obstacle.token}: more than one TAS flavor assigned: {', '.join(obstacle.several_topologies)}"
    if obstacle.of_topologies:
        return f"{obstacle.token}: no TAS flavor assigned"
    if not obstacle.shortages:
        return f"{obstacle.token}: {_fixable(obstacle).message}"
    short = max(obstacle.shortages, key=lambda short: short.capacity / kueue.plus(short.before, short.requested))
    resource = short.pair.resource
    requested = kueue.text(resource, kueue.plus(short.before, short.requested))
    capacity = kueue.text(resource, short.capacity)
    return f"{obstacle.token}: {requested} {resource} > {capacity} in flavor {short.pair.flavor}"


def _fixable(obstacle: Obstacle) -> Mismatch:
    """The first mismatch with a fix, else the first mismatch."""
    return next((mismatch for mismatch in obstacle.mismatches if mismatch.fix), obstacle.mismatches[0])


def _other_queue(ctx: Context, name: str | None, sets: tuple[PodSet, ...], fits: Fits) -> str:
    """The fix that names another queue; empty if the unchanged job fits into no other queue."""
    for other, behind in islice(queues.usable(ctx.view, ctx.namespace), MAX_QUEUES_TRIED):
        if other != name and fits(behind, sets):
            return f"Use queue {other}."
    return ""


def _fix(
    obstacle: Obstacle,
    size: Size | None,
    sizes: Sizes,
    fits: Callable[[tuple[PodSet, ...]], bool],
    sets: tuple[PodSet, ...],
) -> str:
    if obstacle.unavailable is not None:
        # A job usually cannot do without its devices (accelerators, RDMA).
        return "Use another queue." if "/" in obstacle.unavailable else "Leave it out."
    if obstacle.of_topologies:
        name = topology.request_for(obstacle.of_topologies)
        return f'Request {name}: "0".' if "/" in name else f"Request {name}."
    if size is not None:
        return f"Use {_in_words(size, sizes.own)}."
    if obstacle.shortages:
        fewest = sizes.replicas().least
        fewer = fewest > 1 and fits(_resized(sets, replace(sizes.own, workers=1), sizes))
        return f"Ask for quota: fewer than {fewest} workers are rejected." if fewer else "Request less."
    return (obstacle.mismatches and _fixable(obstacle).fix) or "Ask for a queue that fits."


def _in_words(size: Size, own: Size) -> str:
    workers = number_of(size.workers, "worker")
    gpus = f"{number_of(size.gpus, 'GPU')} in each"
    if size.gpus == own.gpus:
        return workers
    return gpus if size.workers == own.workers else f"{workers}, with {gpus}"


def _resized(sets: tuple[PodSet, ...], size: Size, sizes: Sizes) -> tuple[PodSet, ...]:
    return tuple(_of_size(pods, size, sizes) if pods.role == WORKER else pods for pods in sets)


def _of_size(workers: PodSet, size: Size, sizes: Sizes) -> PodSet:
    scaled = workers.scaled(size.workers)
    return scaled if size.gpus == sizes.own.gpus else scaled.with_request(sizes.resource, size.gpus)
