"""References to fields of the pod, and files made of them or of keys of an object."""

from typing import Final

from webhook.api import quantity
from webhook.api.quantity import QuantityError
from webhook.predict.pod_template import texts
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.references import FieldRef, ResourceFieldRef
from webhook.predict.pod_template.volumes import DownwardFile, KeyToPath

_OF_VOLUMES: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_RESOURCES: Final = frozenset(
    f"{field}.{name}" for field in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES: Final = ("requests.hugepages-", "limits.hugepages-")
_OF_CPU: Final = frozenset(map(quantity.parse, ("1m", "1")))
_OF_BYTES: Final = frozenset(
    map(
        quantity.parse,
        ("1", *(f"1{unit}" for unit in ("k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))),
    )
)


def check_field(reference: FieldRef, path: str, known: frozenset[str], found: Faults) -> None:
    """A field of the pod that can be had, or one label or annotation."""
    if reference.api_version not in {None, "", "v1"}:
        found.add(f"{path}.apiVersion", f'"{shown(reference.api_version or "")}" is not supported', "Write v1.")
        return
    field = reference.field_path
    if not field or field in known:
        return
    name, bracket, key = field.partition("['")
    if bracket and key.endswith("']") and name in {"metadata.labels", "metadata.annotations"}:
        key = key[:-2].lower() if name == "metadata.annotations" else key[:-2]
        if problem := texts.label_key(key):
            texts.note(found, f"{path}.fieldPath", field, f"has a key that {problem}", "Correct the key.")
        return
    fix = f"Use one of {', '.join(sorted(known - {'spec.host'}))}, or metadata.labels['KEY']."
    found.add(f"{path}.fieldPath", f'there is no field "{shown(field)}" to be had here', fix, Kind.NOT_SUPPORTED)


def check_resource_field(reference: ResourceFieldRef, path: str, found: Faults, *, in_file: bool = False) -> None:
    """A resource that can be had, in a unit that it has."""
    if in_file and not reference.container_name:
        found.add(f"{path}.containerName", "is missing", "Name the container.", Kind.REQUIRED)
    name = reference.resource
    if name and name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        fix = f"Use one of {', '.join(sorted(_RESOURCES))}."
        found.add(f"{path}.resource", f'"{shown(name)}" is not supported', fix, Kind.NOT_SUPPORTED)
        return
    try:
        divisor = quantity.parse(0 if reference.divisor is None else reference.divisor)
    except QuantityError:
        return
    units = _OF_CPU if name.endswith(".cpu") else _OF_BYTES
    if divisor > 0 and name and divisor not in units:
        fix = "Use 1m or 1." if units is _OF_CPU else "Use 1, or one of the units: 1Mi, 1Gi, 1M and so on."
        found.add(f"{path}.divisor", f"{quantity.format(divisor)} is not supported", fix, Kind.NOT_SUPPORTED)


def check_items(items: list[KeyToPath] | None, path: str, found: Faults, used: set[str] | None = None) -> None:
    """Where keys become files; `used` are the paths of other sources of the same volume, which this adds to."""
    for index, item in enumerate(items or ()):
        if problem := texts.file_inside(item.path):
            texts.note(found, f"{path}.items[{index}].path", item.path, problem, "Name a path inside the volume.")
        _once(item.path, f"{path}.items[{index}].path", used, found)


def check_downward(items: list[DownwardFile] | None, path: str, found: Faults, used: set[str] | None = None) -> None:
    """Where fields of the pod become files."""
    for index, item in enumerate(items or ()):
        where = f"{path}.items[{index}]"
        if problem := texts.file_inside(item.path):
            texts.note(found, f"{where}.path", item.path, problem, "Name a path inside the volume.")
        _once(item.path, f"{where}.path", used, found)
        if item.field_ref is not None:
            check_field(item.field_ref, f"{where}.fieldRef", _OF_VOLUMES, found)
            if item.resource_field_ref is not None:
                found.add(where, "has both fieldRef and resourceFieldRef", "Keep one of the two.", Kind.FORBIDDEN)
        elif item.resource_field_ref is not None:
            check_resource_field(item.resource_field_ref, f"{where}.resourceFieldRef", found, in_file=True)
        else:
            found.add(where, "has neither fieldRef nor resourceFieldRef", "Set one of the two.", Kind.REQUIRED)


def _once(file: str, path: str, used: set[str] | None, found: Faults) -> None:
    if used is None or not file:
        return
    if file in used:
        found.add(path, f'another source makes "{shown(file)}" too', "Give it another path.")
    used.add(file)
