"""Volcano: the total request of the PodGroup that the operator creates for a job, and the job's queue.

mpi-operator `pkg/controller/podgroup.go` (v0.8.0); volcano `pkg/scheduler/plugins/{capacity,proportion}` (v1.14.1).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from webhook.api import pod_resources
from webhook.api.mpijob import LAUNCHER, VOLCANO_QUEUE, WORKER, MPIJob, ReplicaSpec
from webhook.api.pod_resources import Amounts
from webhook.api.quantity import NANO, Quantity
from webhook.cluster.resources.volcano_queues import OPEN, VOLCANO_QUEUES, VolcanoQueue
from webhook.cluster.view import UNKNOWN, ClusterView, Unknown
from webhook.kit.context import Context
from webhook.predict.pod_priority import class_of_pods
from webhook.predict.sizes import Size, Sizes

POLICY: Final = "spec.runPolicy.schedulingPolicy"
QUEUE: Final = f"{POLICY}.queue"
ANNOTATION: Final = f"metadata.annotations[{VOLCANO_QUEUE}]"


def queue_of(job: MPIJob) -> tuple[str, str]:
    """(path, name) of the job's queue; the name is empty if the job sets no queue."""
    policy = job.run_policy.scheduling_policy
    if policy is not None and policy.queue:
        return QUEUE, policy.queue
    named = job.annotations.get(VOLCANO_QUEUE, "")
    return (ANNOTATION, named) if named else (QUEUE, "")


def children(view: ClusterView, name: str) -> list[str]:
    """The known queues directly below this queue, sorted."""
    groups = view.groups(VOLCANO_QUEUES)
    return [] if groups is UNKNOWN else sorted({*groups.get(name, {})} - {name})


def open_leaves(view: ClusterView) -> list[str]:
    """The known queues that take jobs, sorted."""
    queues, groups = view.all(VOLCANO_QUEUES), view.groups(VOLCANO_QUEUES)
    if queues is UNKNOWN or groups is UNKNOWN:
        return []
    return sorted(name for name, queue in queues.items() if queue.state == OPEN and name not in groups)


def ancestors(view: ClusterView, queue: VolcanoQueue) -> Iterator[VolcanoQueue]:
    """The known queues above this queue, from bottom to top; in a cycle, each queue once."""
    seen = {queue.name}
    while queue.parent not in seen:
        seen.add(queue.parent)
        above = view.get(VOLCANO_QUEUES, queue.parent)
        if not isinstance(above, VolcanoQueue):
            return
        yield above
        queue = above


def min_resources(job: MPIJob, ctx: Context, size: Size | None = None) -> Amounts:
    """The total request of the pods that must start together, for the job in this `size` (default: its own size).

    Empty if the operator sets no minimum, or if the total is unknown.
    """
    policy = job.run_policy.scheduling_policy
    if policy is not None and policy.min_resources is not None:
        return pod_resources.read_amounts(policy.min_resources)
    counts = {role: 1 if role == LAUNCHER else job.workers for role, _, _ in job.replicas}
    if size is not None and WORKER in counts:
        counts[WORKER] = size.workers
    if policy is not None and policy.min_available is not None and sum(counts.values()) > policy.min_available:
        last = _left_out_first(job, ctx.view) if policy.min_available > 0 else UNKNOWN
        if last is UNKNOWN:
            return {}
        counts[last] = policy.min_available - 1
    total: dict[str, Quantity] = {}
    for role, _, replica in job.replicas:
        for name, amount in _requests(role, replica, job, ctx, size).items():
            total[name] = Quantity(total.get(name, 0) + amount * counts[role])
    return total


def _left_out_first(job: MPIJob, view: ClusterView) -> str | Unknown:
    """The role with the lower priority. The operator first leaves out the pods of this role (`calPGMinResource`)."""
    ranks = {role: _rank(replica, view) for role, _, replica in job.replicas}
    launcher, worker = ranks.get(LAUNCHER), ranks.get(WORKER)
    if launcher is None or worker is None or UNKNOWN in {launcher, worker}:
        return UNKNOWN
    return LAUNCHER if worker > launcher else WORKER  # type: ignore[operator]


def _rank(replica: ReplicaSpec, view: ClusterView) -> int | Unknown:
    name = replica.template.spec and replica.template.spec.priority_class_name
    priority_class = class_of_pods(view, name) if name else None
    if priority_class is UNKNOWN:
        return UNKNOWN
    return priority_class.value if priority_class is not None else 0


def _requests(role: str, replica: ReplicaSpec, job: MPIJob, ctx: Context, size: Size | None) -> Mapping[str, Quantity]:
    """The requests of one pod. The operator ignores init containers, and uses limits as missing requests."""
    requests: dict[str, Quantity] = {}
    for container in pod_resources.of_template(replica.template).containers:
        if not container.init:
            for name, amount in container.requests.items():
                requests[name] = Quantity(requests.get(name, 0) + amount)
    if size is not None and role == WORKER and (resource := Sizes.of(job, ctx).resource) in requests:
        requests[resource] = Quantity(size.gpus * NANO)
    return requests
