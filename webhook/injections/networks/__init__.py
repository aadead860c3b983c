"""Pods that compute are attached to further networks, by Multus.

Nothing happens unless the policy lists networks, or the job does in its annotation `training.openshift.io/networks`, as
`namespace/name@interface` separated by commas. The job's list replaces the policy's, and an empty annotation means
none. A network without a namespace is in the job's.

They go into the annotation `k8s.v1.cni.cncf.io/networks` of the Worker's template, and of the Launcher's with
`runLauncherAsWorker`, after what the user wrote there and in the same notation, with commas or in JSON. A network that
is already there is not added a second time.

If a network's definition names a device, the first container requests it, once for each attachment that uses it,
including the user's own. If a container requests that device already, nothing is added. Network Resources Injector does
the same with the pods, but after Kueue and the quotas have counted the job: its pods would wait for one another on the
nodes. Leave its option `--honor-resources` off, which adds the device once more.

A network that does not exist is left out, because Network Resources Injector rejects every pod that names one. The same
goes for a network whose existence is unknown, whose interface is in use, or whose device the job could not have: the
ClusterQueue has no quota for it, or the ClusterQueue or a ResourceQuota could never have as much.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from webhook.api import annotations, networks
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob
from webhook.api.networks import Network, NetworksError
from webhook.injections import Caution, injection
from webhook.injections.limits import MAX_NETWORKS_CHARACTERS
from webhook.injections.networks.devices import FORMS as DEVICES
from webhook.injections.networks.devices import QUEUE, ask, refusal
from webhook.kit.context import Context
from webhook.kit.forms import Form, a_text
from webhook.kit.patch import PatchBuilder, Path, template_path
from webhook.kit.settings import InjectionSettings
from webhook.predict.attachments import Attachments, attachments, devices, listed
from webhook.predict.job_pods import job_pods
from webhook.predict.kueue.coverage import not_covered


def _one(text: str) -> str:
    if len(found := networks.parse_strictly(text)) != 1:
        raise ValueError(f'"{text}" names {len(found)} networks, not one')
    return text


NetworkNames = Annotated[tuple[Annotated[str, AfterValidator(_one)], ...], Field(max_length=64)]
"""Networks as `namespace/name@interface`, checked."""


class Settings(InjectionSettings):
    """The networks."""

    networks: NetworkNames = Field((), description="The networks, each as namespace/name@interface.")


FORMS: Final = (
    *(
        Form((*map(str, template_path(role)), "metadata", "annotations", networks.NETWORKS), a_text, text=True)
        for role in (LAUNCHER, WORKER)
    ),
    *DEVICES,
)


@injection("networks", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    """Add what is missing to each template."""
    own = job.annotations.get(annotations.NETWORKS)
    try:
        wanted = read(settings.networks) if own is None else _own(own)
    except NetworksError as error:
        yield Caution(f"{annotations.NETWORKS} {error}")
        return
    if not wanted:
        return
    plans = {role: planned(patch, role, wanted, ctx) for role, _, _ in job.computing()}
    for plan in plans.values():
        _leave_uncounted(plan, ctx, patch)
    requests = _asked(job, plans, ctx)
    if problem := refusal(requests, {name for amounts in requests.values() for name in amounts}, ctx, patch):
        for plan in plans.values():
            _leave_out(plan, [network for network in plan.added if devices([network], ctx)], problem)
        requests = {}
    told: dict[str, None] = {}
    for role, plan in plans.items():
        told |= dict.fromkeys(map(Caution, plan.problems))
        if attach(patch, role, plan):
            told[f"attached to {listed(plan.added, room=80)}"] = None
            ask(role, requests.get(role, {}), patch)
    yield from told


def _leave_uncounted(found: Attachments, ctx: Context, patch: PatchBuilder) -> None:
    """Remove each network whose device Kueue does not charge to the quota."""
    for network in [*found.added]:
        used = devices([network], ctx) or ()
        if problem := not_covered(ctx.view, ctx.namespace, patch.get(QUEUE), used):
            _leave_out(found, [network], problem)


def _leave_out(found: Attachments, networks: list[Network], problem: str) -> None:
    if networks:
        found.added = [network for network in found.added if network not in networks]
        found.problems.append(f"no {listed(networks, room=0)}: {problem}")


def _asked(job: MPIJob, plans: Mapping[str, Attachments], ctx: Context) -> dict[str, dict[str, str]]:
    """The devices to add to each role: without those that it requests itself; none unless all are known."""
    requests = {}
    for pods in job_pods(job, ctx):
        if pods.role not in plans or not pods.template.containers:
            continue
        found = plans[pods.role]
        counted = devices([*found.there, *found.added], ctx) or Counter()
        stated = {name for each in pods.resources.containers for name in (*each.requests, *each.limits)}
        ours = devices(found.added, ctx) or Counter()
        requests[pods.role] = {name: str(counted[name]) for name in ours if counted[name] and name not in stated}
    return requests


def read(names: tuple[str, ...]) -> list[Network]:
    """The networks of a setting."""
    return [network for name in names for network in networks.parse_strictly(name)]


def planned(patch: PatchBuilder, role: str, wanted: list[Network], ctx: Context) -> Attachments:
    """The result for the annotation of the template of `role`, as it is now."""
    text = patch.get(_path(role))
    return attachments(text if isinstance(text, str) else "", wanted, ctx)


def attach(patch: PatchBuilder, role: str, found: Attachments) -> bool:
    """Append the attachments, if there are any, to what the user wrote, in the same notation."""
    path = _path(role)
    return bool(found.added) and patch.add(path, found.extended, over=patch.get(path))


def _path(role: str) -> Path:
    return (*template_path(role), "metadata", "annotations", networks.NETWORKS)


def _own(text: str) -> list[Network]:
    if len(text) > MAX_NETWORKS_CHARACTERS:
        raise NetworksError(f"has more than {MAX_NETWORKS_CHARACTERS} characters")
    return networks.parse_strictly(text)
