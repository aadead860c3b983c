"""Pods that compute get RDMA devices, where the job or the policy asks for them.

A job asks with the annotation `training.openshift.io/rdma: "true"`, and stays without with `"false"`. With `always:
true` in the policy every job with accelerators gets them. They go to the first container of the Worker, and of the
Launcher with `runLauncherAsWorker`:

- the device, as request and limit: the policy's `resource`, else the only RDMA device of the nodes that could hold the
  pods; of each device that a network names (`k8s.v1.cni.cncf.io/resourceName`) one for each attachment to it;
- as many as the policy says for each GPU or pod, else the part of a node's devices that the pod has of its GPUs;
- huge pages, for a device that needs them, where every node that has it offers as much;
- the policy's `networks`, as the injection `networks` does it;
- the policy's `environment`, on the launcher, as far as mpirun passes it on to the ranks.

A pod that asks for such a device already keeps what it has. Nothing is injected, and the user is told why, where a
network does not exist or is not known, the device or its number cannot be told, the pods are for Windows, or the
ClusterQueue of the job has no quota for it: Kueue would never start the job. The queue is also the one that Kueue
itself gives to a job without any.

Neither hostPath nor hostNetwork nor privileged is injected: device plugins give a container its devices themselves.
`IPC_LOCK` is only injected with `ipcLock: true`, in a namespace that enforces no Pod Security level, and for a
container that may run as root: others never get the capability. Elsewhere the nodes need a higher limit of locked
memory (`LimitMEMLOCK` of the container runtime).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from webhook.api import annotations
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import MPIJob
from webhook.api.resources import is_accelerator
from webhook.cluster.resources.nodes import NODES, NodeShape
from webhook.cluster.view import UNKNOWN
from webhook.injections import Caution, injection
from webhook.injections.networks import attach, planned, read
from webhook.injections.rdma.ipc_lock import add_ipc_lock
from webhook.injections.rdma.rank_environment import set_for_ranks
from webhook.injections.rdma.settings import Settings
from webhook.kit.context import Context
from webhook.kit.patch import PatchBuilder, template_path
from webhook.predict.attachments import Attachments, devices, listed
from webhook.predict.job_pods import JobPods, job_pods
from webhook.predict.kueue.coverage import not_covered
from webhook.predict.rdma_devices import HUGEPAGES, Undecided, Wanted, choose, holding, hugepages


@dataclass(slots=True)
class _Plan:
    """What one template gets."""

    pods: JobPods
    attached: Attachments | None = None
    amounts: dict[str, str] = field(default_factory=dict)


@injection("rdma", Settings, since="0.1")
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    """Decide for all templates, then write."""
    asked = job.annotations.get(annotations.RDMA)
    if asked not in {None, "true", "false"}:
        yield Caution(f'{annotations.mention(annotations.RDMA, asked or "")} is neither "true" nor "false"')
        return
    if asked == "false" or not (asked or settings.always):
        return
    computing = {role for role, _, replica in job.computing() if replica.template.containers}
    pods = [each for each in job_pods(job, ctx) if each.role in computing and (asked or _accelerated(each, settings))]
    try:
        plans = [_plan(each, settings, ctx, patch) for each in pods]
    except Undecided as reason:
        yield Caution(f"no RDMA: {reason}")
        return
    if problem := _not_covered(ctx, patch, {name for plan in plans for name in plan.amounts if name != HUGEPAGES}):
        yield Caution(f"no RDMA: {problem}")
        return
    if problem := _not_covered(ctx, patch, {HUGEPAGES} & {name for plan in plans for name in plan.amounts}):
        yield Caution(f"no {HUGEPAGES}: {problem}")
        for plan in plans:
            plan.amounts.pop(HUGEPAGES, None)
    for plan in plans:
        yield from _write(plan, patch)
        if settings.ipc_lock:
            yield from add_ipc_lock(plan.pods, ctx, patch)
    if plans:
        yield from set_for_ranks(job, settings.environment, patch)


def _accelerated(pods: JobPods, settings: Settings) -> bool:
    return any(amount > 0 and is_accelerator(name, settings.accelerators) for name, amount in pods.requests.items())


def _plan(pods: JobPods, settings: Settings, ctx: Context, patch: PatchBuilder) -> _Plan:
    plan = _Plan(pods)
    if pods.template.spec is not None and pods.template.spec.for_windows:
        raise Undecided(f"the {pods.role.lower()} is for Windows")
    attached = planned(patch, pods.role, read(settings.networks), ctx)
    used = devices([*attached.there, *attached.added], ctx)
    stated = [name for each in pods.resources.containers for name in (*each.requests, *each.limits)]
    known = (*settings.devices, *(used or ()), *([settings.resource] if settings.resource else ()))
    if any(is_accelerator(name, known) for name in stated):
        return plan
    if attached.problems:
        raise Undecided(attached.problems[0])
    plan.attached = attached
    if used:
        plan.amounts = {name: str(count) for name, count in used.items()}
        return plan
    if used is None and not settings.resource:
        raise Undecided("the devices of the networks are not known, and the policy names no device")
    shapes = _shapes(pods, ctx)
    wanted = Wanted(
        settings.resource,
        settings.devices,
        settings.shared,
        settings.accelerators,
        settings.per_gpu,
        settings.per_pod,
    )
    resource, count = choose(wanted, pods, shapes)
    plan.amounts = {resource: str(count), **hugepages(settings.hugepages.get(resource), resource, pods, shapes)}
    return plan


def _not_covered(ctx: Context, patch: PatchBuilder, resources: set[str]) -> str:
    return not_covered(ctx.view, ctx.namespace, patch.get(("metadata", "labels", QUEUE_NAME)), resources)


def _shapes(pods: JobPods, ctx: Context) -> list[NodeShape]:
    groups = ctx.view.groups(NODES)
    return [] if groups is UNKNOWN else holding(pods, groups.keys())  # type: ignore[arg-type]  # what NODES groups by


def _write(plan: _Plan, patch: PatchBuilder) -> Iterator[str]:
    role = plan.pods.role
    resources = (*template_path(role), "spec", "containers", 0, "resources")
    added = []
    if plan.attached is not None and attach(patch, role, plan.attached):
        added.append(f"the networks {listed(plan.attached.added, room=44)}")
    for name, amount in plan.amounts.items():
        patch.add((*resources, "limits", name), amount)
        patch.add((*resources, "requests", name), amount)
        added.append(f"{amount} {name}")
    if added:
        yield f"gave the {role.lower()} {', '.join(added)}"
