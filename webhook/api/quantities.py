"""Every place in a pod template where Kubernetes' programs decode a quantity."""

from collections.abc import Iterator

from webhook.api.pod import PodTemplate
from webhook.api.requirements import ResourceFieldRef, ResourceRequirements
from webhook.api.volume import DownwardItem, Volume

Found = Iterator[tuple[str, object]]


def of_template(path: str, template: PodTemplate) -> Found:
    """(path, quantity as written) of each; `path` is where the template stands."""
    for where, container in template.each_container(path):
        if container.resources is not None:
            yield from _requirements(f"{where}.resources", container.resources)
        for index, variable in enumerate(container.env or ()):
            if variable.value_from is not None:
                yield from _field(f"{where}.env[{index}].valueFrom", variable.value_from.resource_field_ref)
    spec = template.spec
    if spec is None:
        return
    if spec.resources is not None:
        yield from _requirements(f"{path}.spec.resources", spec.resources)
    yield from of_resources(f"{path}.spec.overhead", spec.overhead)
    for index, volume in enumerate(spec.volumes or ()):
        yield from _volume(f"{path}.spec.volumes[{index}]", volume)


def of_resources(path: str, resources: dict[str, object] | None) -> Found:
    """(path, quantity) of each resource in a mapping by name."""
    for name, value in (resources or {}).items():
        yield f"{path}[{name}]", value


def _requirements(path: str, resources: ResourceRequirements) -> Found:
    yield from of_resources(f"{path}.requests", resources.requests)
    yield from of_resources(f"{path}.limits", resources.limits)


def _volume(path: str, volume: Volume) -> Found:
    if volume.empty_dir is not None and volume.empty_dir.size_limit is not None:
        yield f"{path}.emptyDir.sizeLimit", volume.empty_dir.size_limit
    claim = volume.ephemeral and volume.ephemeral.volume_claim_template
    if claim and claim.spec and claim.spec.resources:
        yield from _requirements(f"{path}.ephemeral.volumeClaimTemplate.spec.resources", claim.spec.resources)
    if volume.downward_api is not None:
        yield from _items(f"{path}.downwardAPI", volume.downward_api.items)
    for index, source in enumerate((volume.projected and volume.projected.sources) or ()):
        if source.downward_api is not None:
            yield from _items(f"{path}.projected.sources[{index}].downwardAPI", source.downward_api.items)


def _items(path: str, items: list[DownwardItem] | None) -> Found:
    for index, item in enumerate(items or ()):
        yield from _field(f"{path}.items[{index}]", item.resource_field_ref)


def _field(path: str, reference: ResourceFieldRef | None) -> Found:
    if reference is not None and reference.divisor is not None:
        yield f"{path}.resourceFieldRef.divisor", reference.divisor
