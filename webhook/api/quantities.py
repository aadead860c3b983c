"""Every place in a pod template where Kubernetes' programs decode a quantity."""

from collections.abc import Mapping

import msgspec

from webhook.api.pod import Container, PodTemplate
from webhook.api.requirements import ResourceFieldRef, ResourceRequirements
from webhook.api.volume import DownwardItem, Volume

Where = tuple[object, ...]


class Written(msgspec.Struct, frozen=True, gc=False):
    """Quantities as written, by name of the resource; one that is a field of its own has the name ""."""

    where: Where
    """The parts of the path, put together only for a fault: a job has dozens of quantities."""
    amounts: Mapping[str, object]
    field: str = ""
    """The end of the path."""

    def path(self, name: str) -> str:
        """Where one of them stands in the user's YAML."""
        return "".join(map(str, self.where)) + self.field + (f"[{name}]" if name else "")


def of_template(path: str, template: PodTemplate) -> list[Written]:
    """Those of a template, which stands at `path`."""
    found: list[Written] = []
    spec = template.spec
    if spec is None:
        return found
    for index, container in enumerate(spec.containers or ()):
        _container(path, ".spec.containers[", index, container, found)
    for index, container in enumerate(spec.init_containers or ()):
        _container(path, ".spec.initContainers[", index, container, found)
    if spec.resources is not None:
        _requirements((path, ".spec.resources"), spec.resources, found)
    if spec.overhead:
        found.append(Written((path, ".spec.overhead"), spec.overhead))
    for index, volume in enumerate(spec.volumes or ()):
        if volume.empty_dir or volume.ephemeral or volume.downward_api or volume.projected:
            _volume((path, ".spec.volumes[", index, "]"), volume, found)
    return found


def _container(path: str, kind: str, index: int, container: Container, found: list[Written]) -> None:
    if container.resources is not None:
        _requirements((path, kind, index, "].resources"), container.resources, found)
    for position, variable in enumerate(container.env or ()):
        if variable.value_from is not None and variable.value_from.resource_field_ref is not None:
            where = (path, kind, index, "].env[", position, "].valueFrom")
            _field(where, variable.value_from.resource_field_ref, found)


def _requirements(where: Where, resources: ResourceRequirements, found: list[Written]) -> None:
    if resources.requests:
        found.append(Written(where, resources.requests, ".requests"))
    if resources.limits:
        found.append(Written(where, resources.limits, ".limits"))


def _volume(where: Where, volume: Volume, found: list[Written]) -> None:
    if volume.empty_dir is not None and volume.empty_dir.size_limit is not None:
        found.append(Written((*where, ".emptyDir.sizeLimit"), {"": volume.empty_dir.size_limit}))
    claim = volume.ephemeral and volume.ephemeral.volume_claim_template
    if claim and claim.spec and claim.spec.resources:
        _requirements((*where, ".ephemeral.volumeClaimTemplate.spec.resources"), claim.spec.resources, found)
    if volume.downward_api is not None:
        _items((*where, ".downwardAPI"), volume.downward_api.items, found)
    for index, source in enumerate((volume.projected and volume.projected.sources) or ()):
        if source.downward_api is not None:
            _items((*where, ".projected.sources[", index, "].downwardAPI"), source.downward_api.items, found)


def _items(where: Where, items: list[DownwardItem] | None, found: list[Written]) -> None:
    for index, item in enumerate(items or ()):
        if item.resource_field_ref is not None:
            _field((*where, ".items[", index, "]"), item.resource_field_ref, found)


def _field(where: Where, reference: ResourceFieldRef, found: list[Written]) -> None:
    if reference.divisor is not None:
        found.append(Written((*where, ".resourceFieldRef.divisor"), {"": reference.divisor}))
