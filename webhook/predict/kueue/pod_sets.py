"""A job's pod sets as Kueue computes them (kueue `pkg/controller/jobs/mpijob`, `pkg/workload`).

For a Worker without `replicas` Kueue assumes one pod, but the operator creates no pod.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from webhook.api import mpijob
from webhook.api.kueue import FOREIGN, PREFIX, UNLIMITED, amount
from webhook.api.mpijob import MULTIKUEUE, WORKER, MPIJob
from webhook.api.pod import PodTemplate
from webhook.cluster.resources.kueue_config import KueueConfig
from webhook.kit.context import Context
from webhook.predict.job_pods import job_pods
from webhook.predict.kueue.topology import TopologyRequest

_ALLOWED_FLAVORS: Final = PREFIX + "workload-allowed-resource-flavors"


class PodSet(msgspec.Struct, frozen=True):
    """Pods of one role. `requests` are the requests of one pod that Kueue certainly counts, in Kueue's units."""

    role: str
    path: str
    count: int
    requests: Mapping[str, int]
    template: PodTemplate
    topology: TopologyRequest
    certain: bool = True
    """False if Kueue may count resources that are not in `requests`."""

    @property
    def total(self) -> dict[str, int]:
        return {name: min(value * self.count, UNLIMITED) for name, value in self.requests.items()}

    def scaled(self, count: int) -> "PodSet":
        return replace(self, count=count)

    def with_request(self, resource: str, value: int) -> "PodSet":
        """The pods with `value` as their request for `resource`. Pods that do not request it stay unchanged."""
        return replace(self, requests={**self.requests, resource: value}) if resource in self.requests else self


def pod_sets(job: MPIJob, ctx: Context, config: KueueConfig) -> tuple[PodSet, ...] | None:
    """The launcher's pod set, then the workers'. None if they cannot be computed, for example for a MultiKueue job."""
    if job.run_policy.managed_by == MULTIKUEUE or _ALLOWED_FLAVORS in job.annotations:
        return None
    if any(key in job.labels or key in job.annotations for key in FOREIGN):
        return None
    result = []
    for pods in job_pods(_counted(job, ctx), ctx):
        topology = TopologyRequest.of(pods.template.annotations)
        if topology is None or (pods.template.spec and pods.template.spec.resource_claims):
            return None
        requests = {name: amount(name, value) for name, value in pods.requests.items() if not config.leaves_out(name)}
        counted = (name for name in pods.requests if not name.startswith(config.excluded_prefixes))
        certain = pods.certain and all(name in requests for name in counted)
        result.append(PodSet(pods.role, pods.path, pods.count, requests, pods.template, topology, certain))
    return tuple(result)


def _counted(job: MPIJob, ctx: Context) -> MPIJob:
    if job.worker is None or job.workers:
        return job
    written = mpijob.decode(ctx.document).worker
    if written is None or written.replicas is not None:
        return job
    worker = msgspec.structs.replace(job.worker, replicas=1)
    specs = {**(job.spec.mpi_replica_specs or {}), WORKER: worker}
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, mpi_replica_specs=specs))
