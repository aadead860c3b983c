"""Pods that run ranks are attached to further networks, by Multus.

The networks are listed in the policy, or in the job's annotation `training.openshift.io/networks`, as
`namespace/name@interface` separated by commas. The job's list replaces the policy's list, and an empty annotation means
no network. A network without a namespace is in the job's namespace.

The networks are added to the annotation `k8s.v1.cni.cncf.io/networks` of the Worker's template, and of the Launcher's
template with `runLauncherAsWorker`. They follow the user's networks in the same notation, with commas or in JSON. A
network that the user lists is not added again.

If a network's definition names a device, the first container requests the device, once for each attachment that uses
it, including the user's attachments. If a container already requests the device, nothing is added. Network Resources
Injector adds the same requests to the pods, but only after Kueue and the quotas have charged the job. Without this
injection too many jobs would be admitted, and their pods would wait for devices. Leave the option `--honor-resources`
of Network Resources Injector off, because it would add the device a second time.

A network that does not exist is left out, because Network Resources Injector rejects every pod that names it. A network
is also left out if its existence is unknown, if its interface is in use, or if the job could not get the network's
device: the ClusterQueue has no quota for the device, or the job would exceed the ClusterQueue or a ResourceQuota.
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
from webhook.injections.networks.devices import QUEUE, add_requests, obstacle
from webhook.kit.context import Context
from webhook.kit.forms import Form, a_text
from webhook.kit.patch import PatchBuilder, Path, template_path
from webhook.kit.settings import InjectionSettings
from webhook.predict.attachments import Attachments, attachments, devices, listed
from webhook.predict.job_pods import job_pods
from webhook.predict.kueue.coverage import not_covered


def _single(text: str) -> str:
    if len(listed_networks := networks.parse_strictly(text)) != 1:
        raise ValueError(f'"{text}" names {len(listed_networks)} networks, not one')
    return text


NetworkNames = Annotated[tuple[Annotated[str, AfterValidator(_single)], ...], Field(max_length=64)]
"""Validated networks, each as `namespace/name@interface`."""


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
    annotation = job.annotations.get(annotations.NETWORKS)
    try:
        selected = read(settings.networks) if annotation is None else _of_annotation(annotation)
    except NetworksError as error:
        yield Caution(f"{annotations.NETWORKS} {error}")
        return
    if not selected:
        return
    plans = {role: planned(patch, role, selected, ctx) for role, _, _ in job.computing()}
    for plan in plans.values():
        _leave_uncovered_out(plan, ctx, patch)
    requests = _requests(job, plans, ctx)
    if problem := obstacle(requests, {name for amounts in requests.values() for name in amounts}, ctx, patch):
        for plan in plans.values():
            _leave_out(plan, [network for network in plan.added if devices([network], ctx)], problem)
        requests = {}
    notes: dict[str, None] = {}
    for role, plan in plans.items():
        notes |= dict.fromkeys(map(Caution, plan.problems))
        if attach(patch, role, plan):
            notes[f"attached to {listed(plan.added, room=80)}"] = None
            add_requests(role, requests.get(role, {}), patch)
    yield from notes


def _leave_uncovered_out(plan: Attachments, ctx: Context, patch: PatchBuilder) -> None:
    for network in [*plan.added]:
        used = devices([network], ctx) or ()
        if problem := not_covered(ctx.view, ctx.namespace, patch.get(QUEUE), used):
            _leave_out(plan, [network], problem)


def _leave_out(plan: Attachments, networks: list[Network], problem: str) -> None:
    if networks:
        plan.added = [network for network in plan.added if network not in networks]
        plan.problems.append(f"no {listed(networks, room=0)}: {problem}")


def _requests(job: MPIJob, plans: Mapping[str, Attachments], ctx: Context) -> dict[str, dict[str, str]]:
    """The device requests to add to each role. A role gets none if the device of one of its networks is unknown."""
    requests = {}
    for pods in job_pods(job, ctx):
        if pods.role not in plans or not pods.template.containers:
            continue
        plan = plans[pods.role]
        counted = devices([*plan.there, *plan.added], ctx) or Counter()
        stated = {name for container in pods.resources.containers for name in (*container.requests, *container.limits)}
        added = devices(plan.added, ctx) or Counter()
        requests[pods.role] = {name: str(counted[name]) for name in added if counted[name] and name not in stated}
    return requests


def read(names: tuple[str, ...]) -> list[Network]:
    return [network for name in names for network in networks.parse_strictly(name)]


def planned(patch: PatchBuilder, role: str, selected: list[Network], ctx: Context) -> Attachments:
    """The networks of the template of `role` after `selected` are added. Other injections may have added networks."""
    text = patch.get(_path(role))
    return attachments(text if isinstance(text, str) else "", selected, ctx)


def attach(patch: PatchBuilder, role: str, plan: Attachments) -> bool:
    """Append the added networks to the annotation. Returns False if no network is added."""
    path = _path(role)
    return bool(plan.added) and patch.add(path, plan.extended, over=patch.get(path))


def _path(role: str) -> Path:
    return (*template_path(role), "metadata", "annotations", networks.NETWORKS)


def _of_annotation(text: str) -> list[Network]:
    if len(text) > MAX_NETWORKS_CHARACTERS:
        raise NetworksError(f"has more than {MAX_NETWORKS_CHARACTERS} characters")
    return networks.parse_strictly(text)
