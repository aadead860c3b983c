"""All quantities in a pod template that Kubernetes parses."""

from collections.abc import Iterator, Mapping, Sequence

from webhook.api.pod import DownwardItem, PodTemplate, ResourceFieldRef, ResourceRequirements, Volume

Where = tuple[object, ...]
"""The parts of a path. A job has dozens of quantities, so the parts are joined only for a violation."""
Written = tuple[Where, Mapping[str, object]]
"""The path of a mapping, and its quantities by resource name. A field with a single quantity has the name ""."""


def place(where: Where, name: str) -> str:
    return "".join(map(str, where)) + (f"[{name}]" if name else "")


def of_template(template: PodTemplate) -> Iterator[Written]:
    spec = template.spec
    if spec is None:
        return
    for kind, index, container in template.each_container:
        if container.resources is not None:
            yield from _requirements((".spec.", kind, "[", index, "].resources"), container.resources)
        for position, variable in enumerate(container.env or ()):
            if variable.value_from is not None and variable.value_from.resource_field_ref is not None:
                where = (".spec.", kind, "[", index, "].env[", position, "].valueFrom")
                yield from _field(where, variable.value_from.resource_field_ref)
    if spec.resources is not None:
        yield from _requirements((".spec.resources",), spec.resources)
    if spec.overhead:
        yield (".spec.overhead",), spec.overhead
    for index, volume in enumerate(spec.volumes or ()):
        if volume.empty_dir or volume.ephemeral or volume.downward_api or volume.projected:
            yield from _volume((".spec.volumes[", index, "]"), volume)


def _requirements(where: Where, resources: ResourceRequirements) -> Iterator[Written]:
    if resources.requests:
        yield (*where, ".requests"), resources.requests
    if resources.limits:
        yield (*where, ".limits"), resources.limits


def _volume(where: Where, volume: Volume) -> Iterator[Written]:
    if volume.empty_dir is not None and volume.empty_dir.size_limit is not None:
        yield (*where, ".emptyDir.sizeLimit"), {"": volume.empty_dir.size_limit}
    claim = volume.ephemeral and volume.ephemeral.volume_claim_template
    if claim and claim.spec and claim.spec.resources:
        yield from _requirements((*where, ".ephemeral.volumeClaimTemplate.spec.resources"), claim.spec.resources)
    if volume.downward_api is not None:
        yield from _items((*where, ".downwardAPI"), volume.downward_api.items)
    for index, source in enumerate((volume.projected and volume.projected.sources) or ()):
        if source.downward_api is not None:
            yield from _items((*where, ".projected.sources[", index, "].downwardAPI"), source.downward_api.items)


def _items(where: Where, items: Sequence[DownwardItem] | None) -> Iterator[Written]:
    for index, item in enumerate(items or ()):
        if item.resource_field_ref is not None:
            yield from _field((*where, ".items[", index, "]"), item.resource_field_ref)


def _field(where: Where, reference: ResourceFieldRef) -> Iterator[Written]:
    if reference.divisor is not None:
        yield (*where, ".resourceFieldRef.divisor"), {"": reference.divisor}
