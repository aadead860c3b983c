"""The sizes that a job could have: numbers of workers and accelerators that all rules admit."""

from bisect import bisect_left
from collections.abc import Callable, Sequence

import msgspec

from webhook.api import quantity
from webhook.api.accelerators import DEVICES_OF_CLASS, is_accelerator
from webhook.api.mpijob import LAUNCHER, WAIT_FOR_WORKERS, WORKER, MPIJob, replica_path
from webhook.api.quantity import Quantity
from webhook.cluster.view import UNKNOWN
from webhook.kit.advice_bounds import Admitted, Span
from webhook.kit.context import Context
from webhook.kit.mpirun_calls import ranks_with_slots
from webhook.predict.devices import claimed_resource, of_each, of_pod
from webhook.predict.limits import MAX_GPUS_PER_NODE_TRIED, MAX_WORKERS_TRIED
from webhook.predict.nodes import all_nodes


class Size(msgspec.Struct, frozen=True):
    """`gpus` is the number of accelerators of each worker."""

    workers: int
    gpus: int


Fits = Callable[[Size], bool]


class Sizes(msgspec.Struct, frozen=True):
    """The sizes that the rules admit. If a size fits, every smaller size fits too."""

    admitted: Admitted
    own: Size
    """The size of the job."""
    launcher: int
    """The launcher's accelerators."""
    computing_launcher: bool
    slots: int
    job: MPIJob
    gang: int | None
    """The number of pods that must exist before any of them starts; None for all pods."""
    waits: bool
    """True if the operator creates the launcher after the workers."""
    resource: str = ""
    """The resource of the workers' accelerators; for a claim, the quota resource of its device class.

    Empty if a worker has no accelerators, or gets them from several containers, resources or claim requests.
    """

    @staticmethod
    def of(job: MPIJob, ctx: Context) -> "Sizes":
        return ctx.once(_sizes, job)

    @property
    def ranks(self) -> int:
        """The maximum number of ranks that the launcher starts with one slot for each; 0 if unknown."""
        return ranks_with_slots(self.job)

    def replicas(self, gpus: int | None = None) -> Span:
        """The admitted worker counts with `gpus` accelerators per worker (default: the job's number)."""
        gpus = self.own.gpus if gpus is None else gpus
        launcher = 1 if self.computing_launcher else 0
        of_rules = self.admitted.workers
        span = Span(max(of_rules.least - launcher, 1), None if of_rules.most is None else of_rules.most - launcher)
        most = self.admitted.job_gpus.most
        return span if most is None or not gpus else span & Span(0, (most - self.launcher) // gpus)

    def gpus(self, workers: int) -> Span:
        """The admitted numbers of accelerators per worker."""
        most = self.admitted.job_gpus.most
        span = self.admitted.gpus & Span(1)
        return span if most is None else span & Span(0, (most - self.launcher) // max(workers, 1))

    def fewest_slots(self, least: int) -> int:
        """The smallest slot count per worker, from `least` up, that is enough for the launcher's ranks.

        The result is within the rules' limits, even if these are too low for the ranks.
        """
        admitted = self.admitted.slots & Span(max(least, 1))
        nodes = max(self.own.workers, self.replicas(gpus=0).least) + (1 if self.computing_launcher else 0)
        needed = -(-self.ranks // nodes)
        return max(admitted.least, needed if admitted.most is None else min(needed, admitted.most))

    def largest(self, fits: Fits) -> Size | None:
        """The largest size that fits and is below the job's size.

        It has fewer workers if possible, otherwise fewer accelerators per worker.
        """
        span = self.replicas()
        workers = _largest(span & Span(0, self.own.workers - 1), lambda count: fits(Size(count, self.own.gpus)))
        if workers:
            return Size(workers, self.own.gpus)
        fewest = self.replicas(gpus=0).least
        for count in dict.fromkeys((self.own.workers, fewest)) if self.resource else ():
            if count in self.replicas(gpus=0) and count <= self.own.workers:
                fewer = self.gpus(count) & Span(0, self.own.gpus - 1)
                if gpus := _largest(fewer, lambda gpus, count=count: fits(Size(count, gpus))):  # type: ignore[misc]
                    return Size(count, gpus)
        return None

    def workers_field(self, size: Size | None) -> str:
        """The path of the worker count if `size` has the rules' maximum worker count and the job's GPUs; else empty."""
        most = self.replicas(gpus=0).most
        return f"{replica_path(WORKER)}.replicas" if most and size == Size(most, self.own.gpus) else ""

    def spread(self, most: int) -> Size | None:
        """A size with more workers, each with at most `most` accelerators, and with the job's total of accelerators.

        None if the rules admit no such size.
        """
        if self.computing_launcher:
            return None  # the launcher would get fewer accelerators too, so the total would change
        total = self.own.workers * self.own.gpus
        for gpus in range(min(most, self.own.gpus - 1, MAX_GPUS_PER_NODE_TRIED), 0, -1):
            workers, rest = divmod(total, gpus)
            if not rest and workers in self.replicas(gpus) and gpus in self.gpus(workers):
                return Size(workers, gpus)
        return None

    def on_nodes(self, ctx: Context) -> Size | None:
        """A size whose workers fit on nodes, if no node has enough accelerators for a worker of the job; else None."""
        if not self.resource or not self.own.gpus:
            return None
        nodes = all_nodes(ctx.view)
        most = 0 if nodes is UNKNOWN else quantity.whole(nodes.most.get(self.resource, Quantity(0)))
        if not 0 < most < self.own.gpus:
            return None
        return self.spread(most) or Size(self.own.workers, most)

    def in_words(self, size: Size) -> str:
        """The settings for this size: `worker count to 4`."""
        parts = [f"worker count to {size.workers}"] * (size.workers != self.own.workers)
        if size.gpus != self.own.gpus:
            by_claim = " by another ResourceClaimTemplate" if self.resource.endswith(DEVICES_OF_CLASS) else ""
            parts.append(f"GPUs per worker to {size.gpus}{by_claim}")
        return listed([*parts, *self.besides(size)])

    def besides(self, size: Size) -> list[str]:
        """The further settings that a job of this size needs to start: `-np to 8`."""
        parts, slots = [], self.slots
        if size.gpus != self.own.gpus == self.slots and size.gpus in self.admitted.slots:
            slots = size.gpus
            parts.append(f"slotsPerWorker to {slots}")
        total = slots * (size.workers + (1 if self.computing_launcher else 0))
        if self.ranks > total > 0:
            parts.append(f"-np to {total}")
        pods = size.workers + (0 if self.waits else 1)
        if self.gang is not None and self.gang > pods:
            parts.append(f"minAvailable to {pods}")
        return parts


def _sizes(job: MPIJob, ctx: Context) -> Sizes:
    names, totals = ctx.admitted.accelerators, {LAUNCHER: 0, WORKER: 0}
    for role, _, replica in job.replicas:
        totals[role] = of_each(replica, names, ctx)
    policy = job.run_policy.scheduling_policy
    return Sizes(
        admitted=ctx.admitted,
        own=Size(job.workers, totals[WORKER]),
        launcher=totals[LAUNCHER],
        computing_launcher=bool(job.spec.run_launcher_as_worker),
        slots=job.spec.slots_per_worker or 0,
        job=job,
        gang=policy.min_available if policy is not None else None,
        waits=job.spec.launcher_creation_policy == WAIT_FOR_WORKERS,
        resource=_resource(job, names, ctx),
    )


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def more_workers(job: MPIJob, ctx: Context, least: int) -> str:
    """Advice to use `least` or more workers, within the rules' limits."""
    sizes = Sizes.of(job, ctx)
    least = max(least, sizes.replicas(gpus=0).least)
    gpus = sizes.gpus(least).most
    also = f", with {gpus} GPUs or fewer in each" if gpus and gpus < sizes.own.gpus else ""
    start = "Set replicas to" if job.worker or job.misnamed(WORKER) else "Add Worker, with replicas:"
    return f"{start} {least} or more{also}."


def fewer_workers(job: MPIJob, ctx: Context, most: int) -> str:
    """Advice to use `most` or fewer workers, within the rules' limits."""
    span = Sizes.of(job, ctx).replicas(gpus=0) & Span(0, most)
    if span.empty:
        return f"Ask your administrator: fewer than {span.least} are rejected too."
    return f"Set replicas to {span.most} or fewer."


def _largest(span: Span, fits: Callable[[int], bool]) -> int:
    """The largest number in the span that fits; 0 if none fits. If a number fits, every smaller number must fit."""
    least = max(span.least, 1)
    fitting = bisect_left(
        range(least, min(span.most or 0, MAX_WORKERS_TRIED) + 1), True, key=lambda number: not fits(number)
    )
    return least + fitting - 1 if fitting else 0


def _resource(job: MPIJob, names: tuple[str, ...], ctx: Context) -> str:
    if job.worker is None:
        return ""
    template = job.worker.template
    if of_pod(template, names, ctx).by_claim:
        return claimed_resource(template, names, ctx)
    candidates = [
        name
        for _, _, container in template.with_devices
        if container.resources is not None
        for name in {**(container.resources.limits or {}), **(container.resources.requests or {})}
        if is_accelerator(name, names)
    ]
    return candidates[0] if len(candidates) == 1 else ""
