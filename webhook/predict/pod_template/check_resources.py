"""The API server's checks of pod-level resources, and the kubelet's check of huge-page volumes.

https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go (`validatePodResources`)
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/volume/emptydir/empty_dir.go (`getPageSizeMountOption`)
"""

from typing import Final

from webhook.api import quantity
from webhook.api.pod_resources import HUGE_PAGES, is_pod_level, read_amounts
from webhook.api.quantity import Quantity
from webhook.predict.pod_template import model
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.resources import page_size

_MEDIUM: Final = "HugePages"
_NOTHING: Final = Quantity(0)


def check_pod_resources(spec: model.PodSpec, path: str, faults: Faults) -> None:
    own = spec.resources or model.Resources()
    containers = spec.containers or []
    for field, amounts in (("limits", own.limits), ("requests", own.requests)):
        for name in amounts or ():
            if not is_pod_level(name):
                fault = "cannot be set for the pod as a whole"
                where = f"{path}.resources.{field}[{shown(name)}]"
                fix = f"Move it to {path}.containers[0].resources.{field}[{shown(name)}]."
                faults.add(where, fault, fix, Kind.NOT_SUPPORTED)
    most = read_amounts(own.limits)
    for name, amount in read_amounts(own.requests).items():
        where = f"{path}.resources.requests[{shown(name)}]"
        total = sum((_least(container).get(name, _NOTHING) for container in containers), _NOTHING)
        if amount > most.get(name, amount):
            most_of_pod = quantity.format(most[name])
            fault = f"{quantity.format(amount)} is above the limit of {most_of_pod}"
            faults.add(where, fault, f"Set it to {most_of_pod} or less.")
        elif total > amount:
            fault = f"{quantity.format(amount)} is below the containers' {quantity.format(total)}"
            faults.add(where, fault, f"Set it to {quantity.format(total)} or more.")
    for index, container in enumerate(containers):
        for name, limit in read_amounts((container.resources or model.Resources()).limits).items():
            if name in most and limit > most[name]:
                fault = f"{quantity.format(limit)} is above the pod's limit of {quantity.format(most[name])}"
                where = f"{path}.containers[{index}].resources.limits[{shown(name)}]"
                faults.add(where, fault, f"Set it to {quantity.format(most[name])} or less.")


def _least(container: model.Container) -> dict[str, Quantity]:
    resources = container.resources or model.Resources()
    return read_amounts(resources.limits) | read_amounts(resources.requests)


def check_huge_pages(spec: model.PodSpec, path: str, faults: Faults, *, without_ranges: bool | None) -> None:
    """A container or the pod must request the page size of a mounted volume of huge pages."""
    huge_pages = [
        (index, volume.name, volume.empty_dir.medium)
        for index, volume in enumerate(spec.volumes or ())
        if volume.empty_dir and volume.empty_dir.medium and volume.empty_dir.medium.startswith(_MEDIUM)
    ]
    if without_ranges is False or not huge_pages:
        return
    containers = [*(spec.containers or ()), *(spec.init_containers or ())]
    mounted = {mount.name for container in containers for mount in container.volume_mounts or ()}
    sizes = {
        page_size(name)
        for resources in (spec.resources, *(container.resources for container in containers))
        if resources is not None
        for name in (*(resources.limits or ()), *(resources.requests or ()))
        if name.startswith(HUGE_PAGES)
    }
    for index, name, medium in huge_pages:
        if name not in mounted:
            continue
        where, size = f"{path}.volumes[{index}].emptyDir.medium", medium.removeprefix(_MEDIUM).removeprefix("-")
        if not (sizes if medium == _MEDIUM else page_size(HUGE_PAGES + size) in sizes):
            fault = f'no container requests pages for "{name}" (the pods never start)'
            fix = f"Set the limit {HUGE_PAGES}{size or '2Mi'} of a container."
            faults.add(where, fault, fix, advisory=without_ranges is None)
        elif medium == _MEDIUM and len(sizes) > 1:
            fault = f'there are several sizes of pages for "{name}" (the pods never start)'
            faults.add(where, fault, f"Name the size, as {_MEDIUM}-2Mi.", advisory=without_ranges is None)
