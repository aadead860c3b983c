"""Requests that a job can never get, because they exceed a ResourceQuota or the quota of the ClusterQueue."""

from collections.abc import Collection, Iterator

from webhook.api import kueue, quantity
from webhook.api.mpijob import MPIJob
from webhook.api.quota_charges import REQUESTS
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.predict.kueue import queues
from webhook.predict.kueue.feasibility import obstacles
from webhook.predict.kueue.managed import configuration, manages
from webhook.predict.kueue.pod_sets import pod_sets
from webhook.predict.quota.assessment import assess


def never_has(job: MPIJob, ctx: Context, resources: Collection[str], *, label: object) -> str:
    """Returns why the job can never get one of the `resources` that it requests; empty if it may get them all.

    `label` is the job's queue label. Shortages of other resources are ignored.
    """
    return next(_beyond_quotas(job, ctx, resources), "") or next(_beyond_queue(job, ctx, resources, label), "")


def _beyond_quotas(job: MPIJob, ctx: Context, resources: Collection[str]) -> Iterator[str]:
    assessment = assess(job, ctx)
    for short in assessment.shortages() if assessment is not None else ():
        name = short.resource.removeprefix(REQUESTS)
        if short.impossible and name in resources:
            has, needed = quantity.format(short.hard), quantity.format(short.whole)
            yield f"ResourceQuota {short.quota.name} has {has} {name}, and the job would need {needed}"


def _beyond_queue(job: MPIJob, ctx: Context, resources: Collection[str], label: object) -> Iterator[str]:
    name, config = queues.of_job(ctx.view, ctx.namespace, label), configuration(ctx.view)
    if not name or name is UNKNOWN or config is UNKNOWN or manages(ctx.view, ctx.namespace) is False:
        return
    behind, sets = queues.cluster_queue(ctx.view, ctx.namespace, name), pod_sets(job, ctx, config)
    if behind is None or sets is None:
        return
    for obstacle in obstacles(ctx.view, behind, sets, config):
        shortages = [short for short in obstacle.shortages if short.pair.resource in resources]
        if shortages:
            short = max(shortages, key=lambda shortage: shortage.capacity)
            resource, whole = short.pair.resource, kueue.plus(short.before, short.requested)
            has, needed = kueue.text(resource, short.capacity), kueue.text(resource, whole)
            yield f"ClusterQueue {behind.name} has at most {has} {resource}, and the job would need {needed}"
