"""Compares one job with the ResourceQuotas of its namespace."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob
from webhook.api.operator_checks import always_rejected, is_rejected
from webhook.api.pod_resources import Amounts
from webhook.api.quantity import NANO, Quantity
from webhook.api.quota_charges import Charge, PodShape, object_charges
from webhook.cluster.resource import ByNamespace, Resource
from webhook.cluster.resources.cluster_resource_quotas import CLUSTER_RESOURCE_QUOTAS
from webhook.cluster.resources.mpijobs import MPI_JOBS
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.resources.reservations import Reservation, ReservedPods
from webhook.cluster.resources.resource_quotas import RESOURCE_QUOTAS, ResourceQuota
from webhook.cluster.view import UNKNOWN, Answer
from webhook.kit.context import Context
from webhook.predict import devices, other_jobs
from webhook.predict.job_pods import JobPods, job_pods
from webhook.predict.quota.fit import Demand, RolePods, Shortage, charged, most_workers, shortages
from webhook.predict.quota.promised_usage import Promises, default_priority_class
from webhook.predict.sizes import Size, Sizes

Quotas = tuple[ResourceQuota, ...]


@dataclass(frozen=True)
class Assessment:
    """A job and the quotas that may apply to it."""

    job: MPIJob
    quotas: Quotas
    pods: tuple[JobPods, ...]
    demand: Demand
    before: Demand | None
    """The demand of the stored job if only an increase is checked; otherwise None."""
    promises: Promises
    _most: dict[str, int] = field(default_factory=dict)

    @cached_property
    def promised(self) -> Mapping[str, Amounts]:
        """The promises to other jobs, by quota name."""
        return self.promises.at_most(self.quotas, without=other_jobs.holder(self.job))

    @property
    def sizes(self) -> Sizes:
        return Sizes.of(self.job, self.promises.ctx)

    def shortages(self, quotas: Quotas | None = None, demand: Demand | None = None) -> list[Shortage]:
        """The shortages of `demand` (default: the job's) in `quotas` (default: all)."""
        demand = self.demand if demand is None else demand
        return shortages(self.quotas if quotas is None else quotas, demand, self.promised, before=self.before)

    def most_workers(self, quota: ResourceQuota) -> int:
        """The largest worker count, below the job's count, that fits the quota now; 0 if none fits."""
        if quota.name not in self._most:
            self._most[quota.name] = most_workers(
                self.demand.workers, lambda count: bool(self.shortages((quota,), self.demand.with_workers(count)))
            )
        return self._most[quota.name]

    def resized(self, size: Size) -> Demand:
        demand = self.demand.with_workers(size.workers)
        if size.gpus == self.sizes.own.gpus:
            return demand
        return demand.with_amount(self.sizes.resource, Quantity(size.gpus * NANO))

    def largest_now(self, short: Iterable[Shortage]) -> Size | None:
        """The largest size below the job's size that fits now and that all rules admit.

        `short` are the job's shortages.
        """
        return self.sizes.largest(lambda size: not any(self._shortages_of(size, short)))

    def largest_ever(self, short: Iterable[Shortage]) -> Size | None:
        """Like `largest_now`, but assumes that no other job runs."""
        return self.sizes.largest(
            lambda size: not any(shortage.impossible for shortage in self._shortages_of(size, short))
        )

    def _shortages_of(self, size: Size, short: Iterable[Shortage]) -> Iterator[Shortage]:
        # The whole job fits the other quotas, so a smaller size does too.
        demand = self.resized(size)
        for quota in {shortage.quota.name: shortage.quota for shortage in short}.values():
            yield from self.shortages((quota,), demand)

    def jobs_using(self, short: Shortage) -> int | None:
        """The number of running jobs that use the scarce resource; None if unknown."""
        others = self.promises.running_without(other_jobs.holder(self.job))
        if others is None:
            return None

        @cache
        def counted(shape: PodShape) -> bool:
            return short.resource in charged(short.quota, [(1, charge) for charge in self.promises.charges(shape)])

        using = sum(count for shapes, count in others.items() if any(map(counted, shapes)))
        return using + any(part.made for part in self.demand.parts)


def namespace_quotas(ctx: Context) -> Quotas:
    """The quotas for the job's namespace; empty if they are unknown."""
    quotas = ctx.view.within(RESOURCE_QUOTAS, ctx.namespace)
    own = () if quotas is UNKNOWN else tuple(quotas.values())
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    if not (isinstance(namespace, Namespace) and namespace.of_openshift):
        return own
    shared = ctx.view.all(CLUSTER_RESOURCE_QUOTAS)
    if shared is UNKNOWN:
        return own
    return (*own, *(quota for quota in shared.values() if ctx.namespace in quota.namespaces))


def assess(job: MPIJob, ctx: Context) -> Assessment | None:
    """The assessment; None if no quota is known, or if this cluster's operator never creates pods for the job."""
    quotas = namespace_quotas(ctx)
    if not quotas or not job.managed_here or _gets_no_pods(job, ctx):
        return None
    old, pods, promises = ctx.old, job_pods(job, ctx), Promises.of(ctx, quotas)
    default_priority = promises.default_priority
    before = None
    if old is not None and (job.suspended or not old.suspended) and not always_rejected(old):
        before = Demand(_parts(job_pods(old, ctx), ctx, default_priority))
    demand = Demand(_parts(pods, ctx, default_priority, _made(job, ctx, promises)), _objects(job, ctx))
    return Assessment(job, quotas, pods, demand, before, promises)


def _gets_no_pods(job: MPIJob, ctx: Context) -> bool:
    """True for a stored job that has ended or that the operator rejects. New jobs are always checked."""
    status = (ctx.old or job).status
    return ctx.operation == "UPDATE" and (status.ended or (not status.conditions and is_rejected(job)))


def reservation_of(job: MPIJob, ctx: Context) -> Reservation | None:
    """The quota use of the admitted job, including its existing pods; None if no quota applies to the job.

    The pods of a suspended job do not count: its resumption is reviewed separately.
    """
    quotas = namespace_quotas(ctx)
    if not quotas or not job.managed_here or _gets_no_pods(job, ctx) or _refused_for_its_name(job, ctx):
        return None
    parts = () if job.suspended else _parts(job_pods(job, ctx), ctx, default_priority_class(ctx, quotas))
    demand = Demand(parts, _objects(job, ctx))
    if not any(charged(quota, demand.whole) for quota in quotas):
        return None
    return Reservation(
        uid=job.metadata.uid,
        name=other_jobs.holder(job),
        new=ctx.operation == "CREATE",
        pods=tuple(ReservedPods(part.role, part.count, _limited(part.charges, quotas)) for part in demand.parts),
        objects=_limited(demand.objects, quotas),
    )


def _refused_for_its_name(job: MPIJob, ctx: Context) -> bool:
    """True if another job has the name of the new job."""
    if ctx.operation != "CREATE":
        return False
    other = other_jobs.of_job(job)
    kind: Resource[ByNamespace, Any] = other.jobs if other else MPI_JOBS
    stored = ctx.view.get(kind, (ctx.namespace, job.metadata.name))
    return not isinstance(stored, Answer) and stored.uid != job.metadata.uid


def _limited(charges: tuple[Charge, ...], quotas: Quotas) -> tuple[Charge, ...]:
    # A reservation needs only the resources that a quota limits.
    hard = {name for quota in quotas for name in quota.hard}
    reduced = (
        Charge(charge.traits, {name: amount for name, amount in charge.usage.items() if amount and name in hard})
        for charge in charges
    )
    return tuple(charge for charge in reduced if charge.usage)


def _objects(job: MPIJob, ctx: Context) -> tuple[Charge, ...]:
    if ctx.operation != "CREATE":
        return ()
    if other := other_jobs.of_job(job):
        return other.objects(len(job_pods(job, ctx)))
    return object_charges(launcher=job.launcher is not None)


def _parts(
    pods: Iterable[JobPods], ctx: Context, default_priority: str | None, made: Callable[[str], int] = lambda _: 0
) -> tuple[RolePods, ...]:
    parts = []
    for of_role in pods:
        charges = of_role.charges(default_priority) + devices.charges(of_role.shape.device_claims, ctx)
        parts.append(RolePods(role=of_role.role, count=of_role.count, charges=charges, made=made(of_role.role)))
    return tuple(parts)


def _made(job: MPIJob, ctx: Context, promises: Promises) -> Callable[[str], int]:
    """Returns a function from a role to the number of the job's existing pods."""
    old = ctx.old
    if ctx.operation == "CREATE":
        return lambda _: 0
    other = other_jobs.of_job(job)
    if other and (made := other.made(ctx)) is not None:
        return partial(made.of, job.metadata.name)
    if promises.made is not None and not other:
        uid = job.metadata.uid or (old.metadata.uid if old is not None else "")
        return partial(promises.made.of, job.metadata.name, uid)
    # The pods are not visible, so an active job is assumed to have all of them.
    expected = {WORKER: old.workers, LAUNCHER: 1} if old is not None and old.active_here else {}
    return lambda role: expected.get(role, 0)
