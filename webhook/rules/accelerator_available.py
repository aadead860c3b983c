"""The cluster's nodes, if empty, could hold each pod of the job, and all pods together.

The rule compares one pod's requests (accelerators, cpu, memory and all others), nodeSelector, required node affinity
and tolerations with the resources, labels and taints of the nodes. Cordoned, starting and temporarily missing nodes are
included. Free capacity is ignored. Labels that differ on every node, such as `kubernetes.io/hostname`, are ignored too.
If no node has a device that the pod requests, the pod's other resources are not checked.

All workers, and the launcher with `runLauncherAsWorker`, must fit on the matching nodes together. Otherwise part of the
job starts and holds its GPUs for ever. This check is left out if Karpenter, or an admission check of the job's queue,
may add nodes.

If no nodes are known, only pod affinity is checked. Required pod affinity must not contradict the job's own required
anti-affinity, and must not select labels that the job has and its pods lack.

Tolerations are not compared if a RuntimeClass may add some, or if the job is queued and Kueue's flavors may add some.
The setting `toleratedTaints` names taints for which other webhooks add tolerations.

A violation is a warning, because nodes may change. With `autoscaled: false` a job is rejected if a pod requests more of
a resource than any node has, or if all nodes together cannot hold the job. The violation stays a warning for a queued
job, for which Kueue may provision nodes, and in a cluster with nodes made by Karpenter.
"""

from collections.abc import Collection, Iterator, Sequence

from pydantic import Field

from webhook.api import quantity
from webhook.api.accelerators import DEFAULT_ACCELERATORS, is_accelerator
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, replica_path
from webhook.api.pod import Toleration
from webhook.api.quantity import Quantity
from webhook.api.taints import untolerated
from webhook.cluster.resources.nodes import NodeShape
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import ResourceNames, RuleSettings
from webhook.predict import affinity
from webhook.predict.devices import backed
from webhook.predict.job_pods import JobPods, job_pods
from webhook.predict.kueue import queues
from webhook.predict.nodes import all_nodes, counted_shapes, node_shapes
from webhook.predict.scheduler import (
    Affinity,
    Demand,
    Label,
    Lack,
    Room,
    Tolerated,
    demands,
    fits,
    lacks,
    pods_per_node,
    requirement_met,
)
from webhook.predict.sizes import Sizes, fewer_workers
from webhook.rules import CauseReason, Degree, Violation, first_of, rule
from webhook.rules.limits import MAX_LISTED_SHAPES, MAX_SHOWN_KINDS

Shapes = Collection[NodeShape]

_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Settings(RuleSettings):
    """Facts that the nodes do not show."""

    autoscaled: bool | None = Field(
        None,
        description="Whether nodes of other kinds may be added when pods wait. true: a violation is only audited; "
        "false: a request for more than any node has is rejected; null (unknown): a violation is at most a warning.",
    )
    tolerated_taints: tuple[str, ...] = Field(
        (),
        description="Keys of taints for which another component adds tolerations when pods are created, such as "
        "nvidia.com/gpu if the API server runs with ExtendedResourceToleration.",
    )
    ignored_resources: ResourceNames = Field(
        (),
        description="Resources that no node reports, in addition to resources of DeviceClasses; `*` matches any text.",
    )


@rule("accelerator-available", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    for field, fault, fix in affinity.contradictions(job):
        yield Violation(field, fault, fix, advisory=True)
    shapes = node_shapes(ctx.view)
    if not shapes:
        return
    roles: dict[str, tuple[Demand, ...]] = {}
    for pods in job_pods(job, ctx):
        requests = {
            name: amount
            for name, amount in pods.requests.items()
            if not (backed(name, ctx) or is_accelerator(name, settings.ignored_resources))
        }
        pod_demands = demands(pods.template, requests, _tolerations(job, pods, settings))
        if fits(pod_demands, shapes):
            roles[pods.role] = pod_demands
        else:
            for lack in _causes(lacks(pod_demands, shapes)):
                yield _violation(job, pods, lack, settings, ctx)
    if WORKER in roles and not _nodes_may_come(job, ctx):
        computes = bool(job.spec.run_launcher_as_worker) and roles.get(LAUNCHER) == roles[WORKER]
        yield from _together(job, roles[WORKER], settings, ctx, launcher=computes)


def _together(
    job: MPIJob, pod_demands: tuple[Demand, ...], settings: Settings, ctx: Context, *, launcher: bool
) -> Iterator[Violation]:
    """`launcher` is True if the launcher is a worker too."""
    capacity = 0
    for shape, count in counted_shapes(ctx.view):
        pods_of_node = pods_per_node(pod_demands, shape)
        capacity += (pods_of_node or 0) * count
        if pods_of_node is None or capacity >= job.workers + launcher:
            return
    sizes = Sizes.of(job, ctx)
    pods = f"{job.workers + 1} pods" if launcher else f"{job.workers} workers"
    yield Violation(
        f"{replica_path(WORKER)}.replicas",
        f"{pods}, nodes for {capacity}",
        fix=fewer_workers(job, ctx, capacity - launcher),
        reason=CauseReason.NOT_SUPPORTED,
        advisory=settings.autoscaled is not False or QUEUE_NAME in job.labels,
        audit_only=settings.autoscaled is True,
        degree=Degree("together", job.workers - capacity),
        follows=sizes.workers_field(sizes.largest(lambda size: size.workers <= capacity - launcher)),
    )


def _nodes_may_come(job: MPIJob, ctx: Context) -> bool:
    name = job.labels.get(QUEUE_NAME)
    queue = queues.cluster_queue(ctx.view, ctx.namespace, name) if name else None
    return bool(name and (queue is None or queue.checks)) or _by_karpenter(ctx)


def _causes(all_lacks: list[Lack]) -> list[Lack]:
    """If no node has a device, lacks of other resources are left out: nodes with the device may have more of them."""
    devices = [lack for lack in all_lacks if _is_missing_device(lack)]
    return [lack for lack in all_lacks if lack in devices or not (devices and isinstance(lack.demand, Room))]


def _is_missing_device(lack: Lack) -> bool:
    demand = lack.demand
    return isinstance(demand, Room) and "/" in demand.resource and lack.everywhere and not _most(demand, lack.near)


def _most(demand: Room, near: Shapes) -> Quantity:
    return max(shape.allocatable.get(demand.resource, Quantity(0)) for shape in near)


def _tolerations(job: MPIJob, pods: JobPods, settings: Settings) -> list[Toleration] | None:
    """None if Kueue or a RuntimeClass may add tolerations."""
    spec = pods.template.spec
    if QUEUE_NAME in job.labels or (spec is not None and spec.runtime_class_name):
        return None
    added = (Toleration(key=key, operator="Exists") for key in settings.tolerated_taints)
    return [*((spec and spec.tolerations) or ()), *added]


def _violation(job: MPIJob, pods: JobPods, lack: Lack, settings: Settings, ctx: Context) -> Violation:
    node = "no node" if lack.everywhere else "no node that otherwise fits"
    match lack.demand:
        case Room() as room if fix := _spread(job, pods, room, _most(room, lack.near), ctx):
            path, fault = "", f"{node} has {_shown(room.amount)} {room.resource}"
        case Room() as room:
            path = ".template.spec.containers"
            fault, fix = _room(pods.role, room, lack.near, node, ctx)
        case Label(key, value):
            path = f".template.spec.nodeSelector[{key}]"
            fault, fix = _label(key, value, lack.near, node, ctx)
        case Affinity() as affinity:
            path = ".template.spec.affinity.nodeAffinity"
            fault, fix = _affinity(affinity, lack.near, node)
        case Tolerated(tolerations):
            path = ".template.spec.tolerations"
            taints = {str(taint) for shape in lack.near for taint in untolerated(shape.taints, tolerations)}
            fault = f"nodes that otherwise fit have the taint {_listed(sorted(taints))}"
            fix = "Tolerate it, if the job may run there."
    return Violation(
        f"{pods.path}{path}",
        fault,
        fix=fix,
        reason=CauseReason.NOT_SUPPORTED,
        advisory=not _is_certain(job, lack, settings, ctx),
        audit_only=settings.autoscaled is True,
    )


def _is_certain(job: MPIJob, lack: Lack, settings: Settings, ctx: Context) -> bool:
    """Whether all nodes certainly have too little of a resource, and no component adds nodes."""
    demand = lack.demand
    if settings.autoscaled is not False or QUEUE_NAME in job.labels:
        return False
    too_little = isinstance(demand, Room) and lack.everywhere and _most(demand, lack.near) > 0
    return too_little and not _by_karpenter(ctx)


def _by_karpenter(ctx: Context) -> bool:
    nodes = all_nodes(ctx.view)
    return nodes is not UNKNOWN and nodes.by_karpenter


def _spread(job: MPIJob, pods: JobPods, room: Room, most: Quantity, ctx: Context) -> str:
    sizes = Sizes.of(job, ctx)
    if pods.role != WORKER or (room.resource, quantity.whole(room.amount)) != (sizes.resource, sizes.own.gpus):
        return ""
    size = sizes.spread(quantity.whole(most))
    if size is None or not (_nodes_may_come(job, ctx) or size.workers <= _parts(room.resource, size.gpus, ctx)):
        return ""
    slots_too = ", slots too" if sizes.slots == sizes.own.gpus and size.gpus in ctx.admitted.slots else ""
    return f"Use {size.workers} workers with {size.gpus}{slots_too}."


def _parts(resource: str, amount: int, ctx: Context) -> int:
    """The number of pods with this amount of the device that all nodes together could hold."""
    return sum(
        quantity.whole(shape.allocatable.get(resource, Quantity(0))) // amount * count
        for shape, count in counted_shapes(ctx.view)
    )


def _room(role: str, demand: Room, near: Shapes, node: str, ctx: Context) -> tuple[str, str]:
    name = demand.resource
    if most := _most(demand, near):
        had = quantity.format(most)
        pod = "the launcher" if role == LAUNCHER else "each worker"
        fix = f"Request {had} {name} or less for {pod}, overhead and sidecars included."
        return f"{_shown(demand.amount)} {name}, but {node} has more than {had}", fix
    other = _meant(name, ctx)
    fix = f"Use {other} instead of {name}." if other else "Check its name and the nodes."
    return f"{node} has {name}{f', but {other}' if other else ''}", fix


def _meant(name: str, ctx: Context) -> str | None:
    """A similar name among the devices of the nodes; None if a well-known name is at least as similar."""
    devices = {device for shape in node_shapes(ctx.view) for device in shape.allocatable if "/" in device}
    if name in devices or is_accelerator(name, DEFAULT_ACCELERATORS):
        return None
    meant = ctx.closest_name(name, lambda: sorted(devices.union(DEFAULT_ACCELERATORS)))
    return meant if meant in devices else None


def _shown(amount: Quantity) -> str:
    exact = quantity.format(amount)
    if len(exact) <= MAX_LISTED_SHAPES:
        return exact
    power = min((quantity.whole(amount).bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{amount / quantity.NANO / 1024**power:.4g}{_UNITS[power]}"


def _label(key: str, value: str, near: Shapes, node: str, ctx: Context) -> tuple[str, str]:
    values = _values(key, near)
    if values:
        return f'{node} has "{value}", but {_listed(values)}', _one_of(values)
    other = ctx.closest_name(key, lambda: sorted({label for shape in near for label in shape.labels}))
    return f"{node} has this label", f"Use {other}." if other else "Remove it, or label the nodes."


def _affinity(demand: Affinity, near: Shapes, node: str) -> tuple[str, str]:
    """(fault, fix). The fault about a single term contains the first condition that no node meets."""
    fix = "Request labels that nodes have."
    if not demand.terms:
        return "selects no node, because it has no conditions", "Write some, or remove it."
    if len(demand.terms) > 1:
        return f"{node} satisfies one of its {len(demand.terms)} terms", fix
    for requirement in demand.terms[0].match_expressions or ():
        if not any(requirement_met(requirement, shape) for shape in near):
            condition = f"{requirement.key} {requirement.operator} {_listed(requirement.values or [])}".rstrip()
            fix = _one_of(_values(requirement.key, near)) or "Remove it, or label the nodes."
            return f"{node} has {condition}", fix
    return f"{node} satisfies all its conditions", fix


def _values(key: str, shapes: Shapes) -> list[str]:
    return sorted({shape.labels[key] for shape in shapes if key in shape.labels})


def _one_of(values: list[str]) -> str:
    if not values:
        return ""
    return f"Use {_listed(values)}." if len(values) == 1 else f"Use one of {_listed(values)}."


def _listed(values: Sequence[str]) -> str:
    return first_of(values, MAX_SHOWN_KINDS)
