"""The pods that the operator will create for a job, and their requests in its namespace.

The operator copies a template's resource fields unchanged (mpi-operator `newWorker`, `newLauncherPodTemplate`). The API
server then adds the defaults of LimitRanges and the overhead of the RuntimeClass.
"""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from webhook.api import pod_resources
from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.api.pod import PodTemplate
from webhook.api.pod_resources import Amounts, PodResources
from webhook.api.quantity import Quantity
from webhook.api.quota_charges import Charge, PodShape, pod_charges, pod_shape
from webhook.cluster.resources.limit_ranges import LIMIT_RANGES, NO_DEFAULTS, Defaults, defaults
from webhook.cluster.resources.runtime_classes import RUNTIME_CLASSES, RuntimeClass
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context


class _Additions(msgspec.Struct, frozen=True):
    defaults: Defaults
    overhead: Amounts | None
    complete: bool
    """False if the cluster may add further amounts that are unknown."""


class JobPods(msgspec.Struct, frozen=True, dict=True):
    """The pods of one role. `template` is without the cluster's additions."""

    role: str
    path: str
    count: int
    template: PodTemplate
    additions: _Additions

    @cached_property
    def resources(self) -> PodResources:
        """The amounts that the API server will store; for resources in `disputed`, the minimum that pods may get."""
        filled_in, overhead = self.additions.defaults, self.additions.overhead
        resources = self._written.with_defaults(requests=filled_in.requests, limits=filled_in.limits)
        return resources if overhead is None else resources.with_overhead(overhead)

    @property
    def certain(self) -> bool:
        """False if the cluster may add requests or limits that cannot be predicted."""
        return self.additions.complete and not self.disputed

    @cached_property
    def disputed(self) -> frozenset[str]:
        """Resources for which LimitRanges have different defaults."""
        filled_in = self.additions.defaults
        if not (filled_in.disputed_requests or filled_in.disputed_limits):
            return frozenset()
        return frozenset().union(
            *(filled_in.disputed_requests - container.requests.keys() for container in self._written.containers),
            *(filled_in.disputed_limits - container.limits.keys() for container in self._written.containers),
        )

    @property
    def by_default(self) -> Iterator[tuple[int, str]]:
        """(index of the container, resource) of each default from LimitRanges."""
        filled_in = {**self.additions.defaults.requests, **self.additions.defaults.limits}
        if not filled_in:
            return
        for index, container in enumerate(self._written.containers):
            named = {*container.requests, *container.limits}
            yield from ((index, name) for name, amount in filled_in.items() if amount and name not in named)

    @cached_property
    def requests(self) -> dict[str, Quantity]:
        """The requests of one pod, including overhead."""
        return pod_resources.requests(self.resources)

    @cached_property
    def limits(self) -> dict[str, Quantity]:
        """The limits of one pod, including overhead."""
        return pod_resources.limits(self.resources)

    @cached_property
    def shape(self) -> PodShape:
        return pod_shape(self.template, self.resources)

    def charges(self, default_priority: str | None) -> tuple[Charge, ...]:
        """The quota use of a pod and of each of its claims, except devices."""
        return pod_charges(self.shape, certain=self.certain, default_priority=default_priority)

    @cached_property
    def _written(self) -> PodResources:
        return pod_resources.of_template(self.template)


def job_pods(job: MPIJob, ctx: Context) -> tuple[JobPods, ...]:
    """The launcher, then the workers, including the pods of a suspended job. A role without pods is left out.

    Empty if another controller manages the job.
    """
    return ctx.once(_job_pods, job)


def _job_pods(job: MPIJob, ctx: Context) -> tuple[JobPods, ...]:
    if not job.managed_here:
        return ()
    ranges = ctx.view.within(LIMIT_RANGES, ctx.namespace)
    filled_in = NO_DEFAULTS if ranges is UNKNOWN or not ranges else defaults(ranges.values())
    result = []
    for role, path, replica in job.replicas:
        count = 1 if role == LAUNCHER else job.workers
        if not count:
            continue
        complete, overhead = ranges is not UNKNOWN, None
        if name := replica.template.spec and replica.template.spec.runtime_class_name:
            runtime = ctx.view.get(RUNTIME_CLASSES, name)
            complete = complete and runtime is not UNKNOWN
            overhead = runtime.overhead if isinstance(runtime, RuntimeClass) else None
        result.append(JobPods(role, path, count, replica.template, _Additions(filled_in, overhead, complete)))
    return tuple(result)
