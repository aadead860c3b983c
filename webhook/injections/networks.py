"""Pods that compute are attached to further networks, by Multus.

Nothing happens unless the policy lists networks, or the job does in its annotation `training.openshift.io/networks`, as
`namespace/name@interface` with commas between. What the job lists takes the place of the policy's list, and an empty
annotation asks for none. A network without a namespace is in the job's.

They go into the annotation `k8s.v1.cni.cncf.io/networks` of the Worker's template, and of the Launcher's with
`runLauncherAsWorker`, after what the user wrote there and in the same notation, with commas or in JSON. A network that
is there already is not added a second time.

A network that does not exist is left out, because Network Resources Injector refuses every pod that names one. So is
one of which it is not known whether it exists, one whose interface another has, and one whose device the ClusterQueue
of the job has no quota for: Network Resources Injector would give that device to pods which Kueue has admitted without
counting it, and they would wait for one another on the nodes.
"""

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from webhook.api import annotations, networks
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import MPIJob
from webhook.api.networks import Network, NetworksError
from webhook.injections import Caution, injection
from webhook.kit.context import Context
from webhook.kit.patch import PatchBuilder, Path, template_path
from webhook.kit.settings import InjectionSettings
from webhook.predict.attachments import Attachments, attachments, devices, listed
from webhook.predict.kueue.coverage import not_covered

# More interfaces than any machine has: what is beyond is not read.
MAX_LENGTH: Final = 4096


def _one(text: str) -> str:
    if len(found := networks.parse_strictly(text)) != 1:
        raise ValueError(f'"{text}" names {len(found)} networks, not one')
    return text


NetworkNames = Annotated[tuple[Annotated[str, AfterValidator(_one)], ...], Field(max_length=64)]
"""Networks as `namespace/name@interface`, checked."""


class Settings(InjectionSettings):
    """The networks."""

    networks: NetworkNames = Field((), description="The networks, each as namespace/name@interface.")


@injection("networks", Settings, since="0.1")
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    """Add what is missing to each template."""
    own = job.annotations.get(annotations.NETWORKS)
    try:
        wanted = read(settings.networks) if own is None else _own(own)
    except NetworksError as error:
        yield Caution(f"{annotations.NETWORKS} {error}")
        return
    told: dict[str, None] = {}
    for role, _, _ in job.computing() if wanted else ():
        found = planned(patch, role, wanted, ctx)
        _leave_uncounted(found, ctx, patch)
        for problem in found.problems:
            told[Caution(problem)] = None
        if attach(patch, role, found):
            told[f"attached to {listed(found.added, room=80)}"] = None
    yield from told


def _leave_uncounted(found: Attachments, ctx: Context, patch: PatchBuilder) -> None:
    """Take out each network whose device Kueue does not count."""
    label = patch.get(("metadata", "labels", QUEUE_NAME))
    for network in [*found.added]:
        used = devices([network], ctx) or ()
        if problem := not_covered(ctx.view, ctx.namespace, label, used):
            found.added.remove(network)
            found.problems.append(f"no {listed([network], room=0)}: {problem}")


def read(names: tuple[str, ...]) -> list[Network]:
    """The networks of a setting."""
    return [network for name in names for network in networks.parse_strictly(name)]


def planned(patch: PatchBuilder, role: str, wanted: list[Network], ctx: Context) -> Attachments:
    """What becomes of the annotation of the template of `role`, as it is now."""
    text = patch.get(_path(role))
    return attachments(text if isinstance(text, str) else "", wanted, ctx)


def attach(patch: PatchBuilder, role: str, found: Attachments) -> bool:
    """Write what is to be added, if there is anything."""
    return bool(found.added) and patch.extend_text(_path(role), found.extended, tuple(map(str, found.added)))


def _path(role: str) -> Path:
    return (*template_path(role), "metadata", "annotations", networks.NETWORKS)


def _own(text: str) -> list[Network]:
    if len(text) > MAX_LENGTH:
        raise NetworksError(f"has more than {MAX_LENGTH} characters")
    return networks.parse_strictly(text)
