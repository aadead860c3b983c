"""Promises: the future use of a namespace's quotas by admitted jobs.

Quota is promised to a job as soon as the job is admitted. Until the job is stored, only a reservation records its use.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import msgspec

from webhook.api.pod_resources import Amounts
from webhook.api.quantity import Quantity
from webhook.api.quota_charges import Charge, PodShape, pod_charges
from webhook.cluster.contents import Group
from webhook.cluster.resources.limit_ranges import LIMIT_RANGES, NO_DEFAULTS, defaults
from webhook.cluster.resources.mpijobs import MPI_JOBS, MPIJobRecord
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.reservations import RESERVATIONS, Reservation
from webhook.cluster.resources.resource_quotas import ResourceQuota
from webhook.cluster.resources.runtime_classes import RUNTIME_CLASSES, RuntimeClass
from webhook.cluster.view import UNKNOWN, Answer
from webhook.kit.context import Context
from webhook.predict import devices, other_jobs
from webhook.predict.limits import MAX_CACHED_DEFAULTS
from webhook.predict.pod_priority import default_class
from webhook.predict.quota.fit import Alternatives, charged_at_most
from webhook.predict.quota.not_yet_used import Jobs, Made, Outstanding, PodCounts, pod_counts, promised, without_pods
from webhook.work_limit import uncounted

Quotas = tuple[ResourceQuota, ...]
Pairs = tuple[tuple[str, Quantity], ...]


@dataclass(frozen=True, slots=True)
class Promises:
    """The future quota use of the jobs in the namespace of `ctx`."""

    ctx: Context
    jobs: Jobs | None
    """None if the jobs are unknown."""
    made: Made | None
    """The existing pods; None if they are unknown."""
    stored: Outstanding
    default_priority: str | None
    charges: Callable[[PodShape], tuple[Charge, ...]]
    """Returns the quota use of a stored job's pod."""

    @classmethod
    def of(cls, ctx: Context, quotas: Quotas) -> "Promises":
        counts, jobs = _pod_counts(ctx), ctx.view.within(MPI_JOBS, ctx.namespace)
        stored_jobs = jobs if isinstance(jobs, Group) else Group({} if jobs is UNKNOWN else jobs)
        made = None if counts is None else counts.made
        priority = default_priority_class(ctx, quotas)
        return cls(
            ctx=ctx,
            jobs=None if jobs is UNKNOWN else stored_jobs,
            made=made,
            stored=counts.outstanding(stored_jobs)
            if counts is not None and made
            else stored_jobs.derived(without_pods),
            default_priority=priority,
            charges=_charges(ctx, priority),
        )

    def at_most(self, quotas: Quotas, *, without: str = "") -> Mapping[str, Amounts]:
        """For each quota, by name: the maximum future use by all jobs except the job `without`.

        The time is not charged to the review: 5,000 jobs of different sizes and 10 quotas take 100 ms.
        """
        return uncounted(lambda: self._at_most(quotas, without))

    def _at_most(self, quotas: Quotas, without: str) -> Mapping[str, Amounts]:
        # If the pods are unknown, it is also unknown how much of the promises is already in use.
        loads = [] if self.made is None else self._promised(without)
        return {quota.name: charged_at_most(quota, loads) for quota in quotas}

    def _promised(self, without: str) -> list[Alternatives]:
        reserved = [*_reserved(self.ctx)]
        kinds = {other[0].kind: other[0] for entry in reserved if (other := other_jobs.of_holder(entry.name))}
        others = {name: made for name, kind in kinds.items() if (made := kind.made(self.ctx)) is not None}
        return promised(self.stored, reserved, job=self._job, without=without, charges=self.charges, others=others)

    def running_without(self, name: str) -> Mapping[tuple[PodShape, ...], int] | None:
        """The number of jobs by the shapes of their pods, without the named job; None if unknown."""
        return None if self.jobs is None else self.stored.running_without(self._job(name))

    def _job(self, name: str) -> MPIJobRecord | None:
        return None if self.jobs is None else self.jobs.get((self.ctx.namespace, name))


def _pod_counts(ctx: Context) -> PodCounts | None:
    pods = ctx.view.within(PODS, ctx.namespace)
    if pods is UNKNOWN:
        return None
    return pods.derived(pod_counts) if isinstance(pods, Group) else pod_counts(Group(pods))


def _reserved(ctx: Context) -> Iterator[Reservation]:
    stored = ctx.view.within(RESERVATIONS, ctx.namespace)
    for reservations in () if stored is UNKNOWN else stored.values():
        for entry in reservations.entries:
            reservation = entry.reservation
            other = other_jobs.of_holder(reservation.name)
            kind, name = (other[0].jobs, other[1]) if other else (MPI_JOBS, reservation.name)
            job = ctx.view.get(kind, (ctx.namespace, name))
            if isinstance(job, Answer) or job.uid != reservation.uid:
                yield reservation
            elif not job.over:
                # `promised` sees only stored MPIJobs. Stored jobs of other kinds already count as objects in `used`.
                yield msgspec.structs.replace(reservation, objects=()) if other else reservation


def _charges(ctx: Context, default_priority: str | None) -> Callable[[PodShape], tuple[Charge, ...]]:
    ranges = ctx.view.within(LIMIT_RANGES, ctx.namespace)
    filled_in = NO_DEFAULTS if ranges is UNKNOWN or not ranges else defaults(ranges.values())
    requests, limits = (tuple(amounts.items()) for amounts in (filled_in.requests, filled_in.limits))

    def charges(shape: PodShape) -> tuple[Charge, ...]:
        overhead = None
        if shape.runtime_class:
            runtime = ctx.view.get(RUNTIME_CLASSES, shape.runtime_class)
            if isinstance(runtime, RuntimeClass) and runtime.overhead is not None:
                overhead = tuple(runtime.overhead.items())
        of_pod = _charges_of(shape, (requests, limits, overhead, default_priority))
        return of_pod + devices.charges(shape.device_claims, ctx)

    return charges


_Defaults = tuple[Pairs, Pairs, Pairs | None, str | None]  # requests, limits, overhead, PriorityClass
# The quota use of pods by shape and defaults. An entry is dropped when no stored job has the shape.
_CHARGES: WeakKeyDictionary[PodShape, dict[_Defaults, tuple[Charge, ...]]] = WeakKeyDictionary()


def _charges_of(shape: PodShape, filled_in: _Defaults) -> tuple[Charge, ...]:
    cached = _CHARGES.setdefault(shape, {})
    if filled_in not in cached:
        if len(cached) >= MAX_CACHED_DEFAULTS:
            cached.clear()
        cached[filled_in] = uncounted(lambda: _compute_charges(shape, filled_in))
    return cached[filled_in]


def _compute_charges(shape: PodShape, filled_in: _Defaults) -> tuple[Charge, ...]:
    requests, limits, overhead, default_priority = filled_in
    resources = shape.resources.with_defaults(requests=dict(requests), limits=dict(limits))
    if overhead is not None:
        resources = resources.with_overhead(dict(overhead))
    return pod_charges(replace(shape, resources=resources), certain=True, default_priority=default_priority)


def default_priority_class(ctx: Context, quotas: Quotas) -> str | None:
    """The PriorityClass of pods without a class name; empty if no quota depends on it, None if unknown."""
    if not any(quota.by_priority for quota in quotas):
        return ""
    default = default_class(ctx.view)
    return None if default is UNKNOWN else default.name
