"""All quantities that Kubernetes parses in a pod template."""

from collections.abc import Mapping, Sequence

from webhook.api.pod import DownwardItem, PodTemplate, ResourceFieldRef, ResourceRequirements, Volume

Written = tuple[str, Mapping[str, object]]
"""The path of a field, and its quantities by resource name. The name is "" if the field itself is a quantity."""


def place(where: str, name: str) -> str:
    return f"{where}[{name}]" if name else where


def of_template(template: PodTemplate) -> list[Written]:
    written: list[Written] = []
    spec = template.spec
    if spec is None:
        return written
    for kind, index, container in template.each_container:
        if container.resources is not None:
            _requirements(f".spec.{kind}[{index}].resources", container.resources, written)
        for position, variable in container.sourced:
            if variable.value_from.resource_field_ref is not None:
                where = f".spec.{kind}[{index}].env[{position}].valueFrom"
                _field(where, variable.value_from.resource_field_ref, written)
    if spec.resources is not None:
        _requirements(".spec.resources", spec.resources, written)
    if spec.overhead:
        written.append((".spec.overhead", spec.overhead))
    for index, volume in enumerate(spec.volumes or ()):
        if volume.empty_dir or volume.ephemeral or volume.downward_api or volume.projected:
            _volume(f".spec.volumes[{index}]", volume, written)
    return written


def _requirements(where: str, resources: ResourceRequirements, written: list[Written]) -> None:
    if resources.requests:
        written.append((f"{where}.requests", resources.requests))
    if resources.limits:
        written.append((f"{where}.limits", resources.limits))


def _volume(where: str, volume: Volume, written: list[Written]) -> None:
    if volume.empty_dir is not None and volume.empty_dir.size_limit is not None:
        written.append((f"{where}.emptyDir.sizeLimit", {"": volume.empty_dir.size_limit}))
    claim = volume.ephemeral and volume.ephemeral.volume_claim_template
    if claim and claim.spec and claim.spec.resources:
        _requirements(f"{where}.ephemeral.volumeClaimTemplate.spec.resources", claim.spec.resources, written)
    if volume.downward_api is not None:
        _items(f"{where}.downwardAPI", volume.downward_api.items, written)
    for index, source in enumerate((volume.projected and volume.projected.sources) or ()):
        if source.downward_api is not None:
            _items(f"{where}.projected.sources[{index}].downwardAPI", source.downward_api.items, written)


def _items(where: str, items: Sequence[DownwardItem] | None, written: list[Written]) -> None:
    for index, item in enumerate(items or ()):
        if item.resource_field_ref is not None:
            _field(f"{where}.items[{index}]", item.resource_field_ref, written)


def _field(where: str, reference: ResourceFieldRef, written: list[Written]) -> None:
    if reference.divisor is not None:
        written.append((f"{where}.resourceFieldRef.divisor", {"": reference.divisor}))
