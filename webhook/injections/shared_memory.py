"""Containers with accelerators get a memory volume at `/dev/shm`, unless they mount another volume there.

NCCL and the data loaders of frameworks pass data between processes through `/dev/shm`. Container runtimes limit it to
64 MiB. A job that needs more fails with "No space left on device" or a bus error after minutes of work. Therefore each
container that requests an accelerator or a resource claim gets an `emptyDir` with `medium: Memory` at `/dev/shm`.

Data in the volume is charged to the memory of the container. Therefore the volume's `sizeLimit` is the size in the
policy, or the memory limit of the container or pod if that is lower. Without a size and a memory limit, no `sizeLimit`
is set. Requests, limits and the use of quotas do not change.

A container that mounts `/dev` or `/` gets nothing. Nothing is injected if the pod uses the host's IPC namespace, if a
volume is already called `shared-memory`, or if the pods are for Windows.
"""

from collections.abc import Iterator
from posixpath import normpath
from typing import Any, Final

from pydantic import Field, field_validator

from webhook.api import quantity
from webhook.api.accelerators import DEFAULT_ACCELERATORS, accelerators, read
from webhook.api.mpijob import MPIJob
from webhook.api.pod import SHARED_MEMORY, Container, PodTemplate
from webhook.api.pod_resources import PodResources
from webhook.api.quantity import Quantity, QuantityError
from webhook.api.untyped import at
from webhook.injections import injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, equal, in_templates
from webhook.kit.patch import PatchBuilder, Path, template_path
from webhook.kit.settings import InjectionSettings, ResourceNames
from webhook.predict.job_pods import job_pods

SHM: Final = "/dev/shm"  # noqa: S108 - a path in a container
# A mount at one of these paths hides the runtime's /dev/shm, or mounts the /dev/shm of the host.
AROUND: Final = frozenset({SHM, "/dev", "/"})

_MEBIBYTE = 2**20 * quantity.NANO


class Settings(InjectionSettings):
    """The size, and the accelerators."""

    size: str | None = Field(
        None, description="The size limit of the volume, such as 64Gi; null for the container's memory limit."
    )
    resources: ResourceNames = Field(
        DEFAULT_ACCELERATORS, description="Names of the resources that are accelerators; * matches any text."
    )

    @field_validator("size")
    @classmethod
    def _readable(cls, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            amount = quantity.parse(text)
        except QuantityError as error:
            raise ValueError(f'"{text}" {error}. {error.fix()}') from None
        if amount <= 0:
            raise ValueError(f'"{text}" is not above zero')
        return text


def _volume(size: str | None) -> dict[str, object]:
    return {"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory", **({"sizeLimit": size} if size else {})}}


def _is_ours(_: str, volume: Any) -> bool:
    size = at(volume, "emptyDir").get("sizeLimit")
    return isinstance(size, str | None) and volume == _volume(size)


FORMS: Final = (
    *in_templates("spec", "volumes", ITEM, holds=_is_ours),
    *in_templates(
        "spec", "containers", ITEM, "volumeMounts", ITEM, holds=equal({"name": SHARED_MEMORY, "mountPath": SHM})
    ),
)


@injection("shared-memory", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    for role, _, replica in job.replicas:
        chosen = _containers(replica.template, settings.resources)
        if not chosen:
            continue
        spec = (*template_path(role), "spec")
        resources = next((pods.resources for pods in job_pods(job, ctx) if pods.role == role), PodResources())
        size = _size(settings, [resources.limits.get("memory"), *_limits(resources, chosen, spec, patch)])
        if not patch.append((*spec, "volumes"), _volume(size)):
            continue
        for index in chosen:
            mount: dict[str, object] = {"name": SHARED_MEMORY, "mountPath": SHM}
            patch.append((*spec, "containers", index, "volumeMounts"), mount, key="mountPath")
        yield f"mounted a memory volume{f' of {size}' if size else ''} at {SHM} of the {role.lower()}"


def _containers(template: PodTemplate, patterns: tuple[str, ...]) -> list[int]:
    """The indices of the template's containers that get the volume."""
    spec = template.spec
    if spec is None or SHARED_MEMORY in [volume.name for volume in spec.volumes or ()]:
        return []
    if spec.host_ipc or spec.for_windows:
        return []
    return [index for index, container in enumerate(template.containers) if _needs_volume(container, patterns)]


def _needs_volume(container: Container, patterns: tuple[str, ...]) -> bool:
    claims = container.resources.claims if container.resources is not None else None
    if not (claims or accelerators(container, patterns)):
        return False
    # For the runtime, a relative path is below the root, and a leading // is the same as /.
    mounted = {normpath(f"/{mount.mount_path.lstrip('/')}") for mount in container.volume_mounts or ()}
    return mounted.isdisjoint(AROUND)


def _limits(resources: PodResources, chosen: list[int], spec: Path, patch: PatchBuilder) -> Iterator[Quantity | None]:
    """The memory limits of the containers, including injected limits."""
    for index in chosen:
        if index < len(resources.containers):
            yield resources.containers[index].limits.get("memory")
        yield read(patch.get((*spec, "containers", index, "resources", "limits", "memory")))


def _size(settings: Settings, limits: list[Quantity | None]) -> str | None:
    """The policy's size, or the lowest memory limit if that is lower. Limits below a mebibyte are ignored as typos."""
    lowest = min((limit for limit in limits if limit and limit >= _MEBIBYTE), default=None)
    if lowest is not None and (settings.size is None or lowest < quantity.parse(settings.size)):
        return quantity.format(lowest)
    return settings.size
