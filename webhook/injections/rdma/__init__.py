"""Pods that run ranks get RDMA devices, if the job or the policy requests them.

A job requests devices with the annotation `training.openshift.io/rdma: "true"`, and opts out with `"false"`. With
`always: true` in the policy every job with accelerators gets devices. The first container of the Worker, and of the
Launcher with `runLauncherAsWorker`, gets

- devices, as request and limit: the policy's `resource`, else the only RDMA device of the nodes that could hold the
  pods. The policy may set the number of devices per GPU or per pod. If the policy sets no number, the pod gets the same
  share of a node's devices as of the node's GPUs. If networks name devices (`k8s.v1.cni.cncf.io/resourceName`), the pod
  gets one device for each attachment instead;
- huge pages, for a device that needs them, if every node with the device has enough;
- the policy's `networks`, as in the injection `networks`.

The launcher gets the policy's `environment`, if mpirun passes it on to the ranks.

A pod that already requests an RDMA device stays unchanged. In the following cases nothing is injected, and a warning
gives the reason:

- a network does not exist, or it is unknown whether the network exists;
- the device or the number cannot be determined;
- the pods are for Windows;
- the quota of the job's ClusterQueue does not cover the device or is too small. A job without a queue uses the
  LocalQueue that Kueue chooses;
- a ResourceQuota of the namespace is too small;
- only the policy (`always`) requests devices, and no node that could hold the pods has enough. A job with the
  annotation may wait for such a node.

hostPath, hostNetwork and privileged are never injected, because device plugins give devices to containers. `IPC_LOCK`
is only injected with `ipcLock: true`, in a namespace that enforces no Pod Security level, and for a container that may
run as root: the capability has no effect for other users. Without `IPC_LOCK` the nodes may need a higher limit of
locked memory (`LimitMEMLOCK` of the container runtime).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from webhook.api import annotations
from webhook.api.accelerators import is_accelerator
from webhook.api.mpijob import MPIJob
from webhook.injections import Caution, injection
from webhook.injections.networks import FORMS as NETWORKS
from webhook.injections.networks import attach, planned, read
from webhook.injections.networks.devices import add_requests, obstacle, on_no_node, shapes_for
from webhook.injections.rdma.ipc_lock import CAPABILITY, add_ipc_lock
from webhook.injections.rdma.rank_environment import is_for_ranks, set_for_ranks
from webhook.injections.rdma.settings import Settings
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, equal, in_launcher, in_templates
from webhook.kit.patch import PatchBuilder
from webhook.predict.attachments import Attachments, devices, listed
from webhook.predict.job_pods import JobPods, job_pods
from webhook.predict.rdma_devices import HUGEPAGES, DeviceSettings, Undecided, choose, hugepages


@dataclass(slots=True)
class _Plan:
    pods: JobPods
    attached: Attachments | None = None
    amounts: dict[str, str] = field(default_factory=dict)


_CAPABILITIES: Final = ("spec", "containers", ITEM, "securityContext", "capabilities", "add")
FORMS: Final = (
    *NETWORKS,
    in_launcher("spec", "containers", ITEM, "env", ITEM, holds=is_for_ranks, when=ComesBack.SAME_FILE),
    *in_templates(*_CAPABILITIES, ITEM, holds=equal(CAPABILITY), when=ComesBack.SAME_FILE),
    *in_templates(*_CAPABILITIES, holds=equal([CAPABILITY]), when=ComesBack.SAME_FILE),
)


@injection("rdma", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    annotated = job.annotations.get(annotations.RDMA)
    if annotated not in {None, "true", "false"}:
        yield Caution(f'{annotations.mention(annotations.RDMA, annotated or "")} is neither "true" nor "false"')
        return
    if annotated == "false" or not (annotated or settings.always):
        return
    computing = {role for role, _, replica in job.computing() if replica.template.containers}
    selected = [
        pods for pods in job_pods(job, ctx) if pods.role in computing and (annotated or _accelerated(pods, settings))
    ]
    try:
        plans = [_plan(pods, settings, ctx, patch) for pods in selected]
        for plan in plans if annotated is None else ():
            if lacking := on_no_node(plan.pods, plan.amounts, ctx):
                raise Undecided(lacking)
        problem = _leave_pages_out(plans, ctx, patch)
    except Undecided as reason:
        yield Caution(f"no RDMA: {reason}")
        return
    if problem:
        yield Caution(f"no {HUGEPAGES}: {problem}")
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
    stated = [name for container in pods.resources.containers for name in (*container.requests, *container.limits)]
    device_patterns = (*settings.devices, *(used or ()), *([settings.resource] if settings.resource else ()))
    if any(is_accelerator(name, device_patterns) for name in stated):
        return plan
    if attached.problems:
        raise Undecided(attached.problems[0])
    plan.attached = attached
    if used:
        plan.amounts = {name: str(count) for name, count in used.items()}
        return plan
    if used is None and not settings.resource:
        raise Undecided("the devices of the networks are not known, and the policy names no device")
    shapes = shapes_for(pods, ctx)
    device_settings = DeviceSettings(
        settings.resource,
        settings.devices,
        settings.shared,
        settings.accelerators,
        settings.per_gpu,
        settings.per_pod,
    )
    resource, count = choose(device_settings, pods, shapes)
    plan.amounts = {resource: str(count), **hugepages(settings.hugepages.get(resource), resource, pods, shapes)}
    return plan


def _leave_pages_out(plans: list[_Plan], ctx: Context, patch: PatchBuilder) -> str:
    """Remove the huge pages from the plans if a quota forbids them, and return the reason."""
    amounts = {plan.pods.role: plan.amounts for plan in plans}
    pages = [plan.amounts.pop(HUGEPAGES, "") for plan in plans]
    if problem := obstacle(amounts, {name for plan in plans for name in plan.amounts}, ctx, patch):
        raise Undecided(problem)
    if not any(pages):
        return ""
    for plan, amount in zip(plans, pages, strict=True):
        plan.amounts |= {HUGEPAGES: amount} if amount else {}
    if problem := obstacle(amounts, {HUGEPAGES}, ctx, patch):
        for plan in plans:
            plan.amounts.pop(HUGEPAGES, None)
    return problem


def _write(plan: _Plan, patch: PatchBuilder) -> Iterator[str]:
    role = plan.pods.role
    added = []
    if plan.attached is not None and attach(patch, role, plan.attached):
        added.append(f"the networks {listed(plan.attached.added, room=44)}")
    add_requests(role, plan.amounts, patch)
    added += [f"{amount} {name}" for name, amount in plan.amounts.items()]
    if added:
        yield f"gave the {role.lower()} {', '.join(added)}"
