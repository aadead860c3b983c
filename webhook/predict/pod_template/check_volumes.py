"""The API server's checks of volumes, and of references to fields of the pod."""

from typing import Final

from msgspec.structs import astuple

from webhook.api import quantity
from webhook.api.crd_schema import such_as
from webhook.api.quantity import QuantityError
from webhook.predict.pod_template import model, texts
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.labels import check_annotations, check_labels, check_selector

_INSIDE: Final = "Name a path inside the volume."
_OF_VOLUMES: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_RESOURCES: Final = frozenset(
    f"{field}.{name}" for field in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES: Final = ("requests.hugepages-", "limits.hugepages-")
_OF_CPU: Final = frozenset(map(quantity.parse, ("1m", "1")))
_OF_BYTES: Final = frozenset(
    map(quantity.parse, ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"])
)


def check_field(reference: model.FieldRef, path: str, fields: frozenset[str], faults: Faults) -> None:
    """The reference must name a label, an annotation or a field in `fields`."""
    if reference.api_version not in {None, "", "v1"}:
        faults.add(f"{path}.apiVersion", f'"{shown(reference.api_version or "")}" is not supported', "Write v1.")
        return
    field = reference.field_path
    if not field or field in fields:
        return
    name, bracket, key = field.partition("['")
    if bracket and key.endswith("']") and name in {"metadata.labels", "metadata.annotations"}:
        key = key[:-2].lower() if name == "metadata.annotations" else key[:-2]
        if problem := texts.label_key(key):
            texts.note(faults, f"{path}.fieldPath", field, f"has a key that {problem}", texts.LETTERS)
        return
    fix = f"Use one of {', '.join(sorted(fields - {'spec.host'}))}, or metadata.labels['KEY']."
    faults.add(f"{path}.fieldPath", f'field "{shown(field)}" is not available here', fix, Kind.NOT_SUPPORTED)


def check_resource_field(
    reference: model.ResourceFieldRef, path: str, faults: Faults, *, in_file: bool = False
) -> None:
    if in_file and not reference.container_name:
        faults.add(f"{path}.containerName", "is missing", "Name the container.", Kind.REQUIRED)
    name = reference.resource
    if name and name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        fix = f"Use one of {', '.join(sorted(_RESOURCES))}."
        faults.add(f"{path}.resource", f'"{shown(name)}" is not supported', fix, Kind.NOT_SUPPORTED)
        return
    try:
        divisor = quantity.parse(0 if reference.divisor is None else reference.divisor)
    except QuantityError:
        return
    units = _OF_CPU if name.endswith(".cpu") else _OF_BYTES
    if divisor > 0 and name and divisor not in units:
        fix = "Use 1m or 1." if units is _OF_CPU else "Use 1, or one of the units: 1Mi, 1Gi, 1M and so on."
        faults.add(f"{path}.divisor", f"{quantity.format(divisor)} is not supported", fix, Kind.NOT_SUPPORTED)


def check_items(items: list[model.KeyToPath] | None, path: str, faults: Faults, used: set[str] | None = None) -> None:
    """`used` has the file paths of the volume's earlier sources; the paths of `items` are added to it."""
    for index, item in enumerate(items or ()):
        texts.check(faults, f"{path}.items[{index}].path", item.path, texts.file_inside, _INSIDE)
        _once(item.path, f"{path}.items[{index}].path", used, faults)


def check_downward(
    items: list[model.DownwardFile] | None, path: str, faults: Faults, used: set[str] | None = None
) -> None:
    """Checks the files of a downward API source.

    `used` has the file paths of the volume's earlier sources; the paths of `items` are added to it.
    """
    for index, item in enumerate(items or ()):
        where = f"{path}.items[{index}]"
        texts.check(faults, f"{where}.path", item.path, texts.file_inside, _INSIDE)
        _once(item.path, f"{where}.path", used, faults)
        if item.field_ref is not None:
            check_field(item.field_ref, f"{where}.fieldRef", _OF_VOLUMES, faults)
            if item.resource_field_ref is not None:
                faults.add(where, "has both fieldRef and resourceFieldRef", "Keep one of the two.", Kind.FORBIDDEN)
        elif item.resource_field_ref is not None:
            check_resource_field(item.resource_field_ref, f"{where}.resourceFieldRef", faults, in_file=True)
        else:
            faults.add(where, "has neither fieldRef nor resourceFieldRef", "Set one of the two.", Kind.REQUIRED)


def _once(file: str, path: str, used: set[str] | None, faults: Faults) -> None:
    if used is None or not file:
        return
    if file in used:
        faults.add(path, f'another source makes "{shown(file)}" too', "Give it another path.")
    used.add(file)


def check_claim(template: model.ClaimTemplate, path: str, faults: Faults) -> None:
    if (meta := template.metadata) is not None:
        check_labels(meta.labels or {}, f"{path}.metadata.labels", faults)
        check_annotations(meta.annotations or {}, f"{path}.metadata.annotations", faults)
        for field, value in (("name", meta.name), ("namespace", meta.namespace), ("finalizers", meta.finalizers)):
            if value:
                faults.add(f"{path}.metadata.{field}", "cannot be set here", "Remove it.", Kind.FORBIDDEN)
    _spec(template.spec, f"{path}.spec", faults)


def _spec(spec: model.ClaimSpec, path: str, faults: Faults) -> None:
    modes = {*spec.access_modes}
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        faults.add(f"{path}.accessModes", "ReadWriteOncePod excludes all other modes", "Keep one.", Kind.FORBIDDEN)
    _storage(spec, f"{path}.resources.requests[storage]", faults)
    for field, name in (
        ("storageClassName", spec.storage_class_name),
        ("volumeAttributesClassName", spec.volume_attributes_class_name),
    ):
        texts.check(faults, f"{path}.{field}", name, texts.subdomain)
    check_selector(spec.selector, f"{path}.selector", faults)
    for field, origin in (("dataSource", spec.data_source), ("dataSourceRef", spec.data_source_ref)):
        if origin is not None:
            _origin(origin, f"{path}.{field}", faults)


def _storage(spec: model.ClaimSpec, path: str, faults: Faults) -> None:
    requests = (spec.resources and spec.resources.requests) or {}
    written = requests.get("storage")
    try:
        amount = quantity.parse(0 if written is None else written)
    except QuantityError:
        return
    if amount == 0:
        fault, kind = ("is 0", Kind.INVALID) if "storage" in requests else ("is missing", Kind.REQUIRED)
        faults.add(path, fault, "Set it to 100Gi, or to what is needed.", kind)


def _origin(origin: model.DataSource, path: str, faults: Faults) -> None:
    if not origin.api_group and origin.kind and origin.kind != "PersistentVolumeClaim":
        fault = f'"{shown(origin.kind)}" needs an apiGroup'
        faults.add(f"{path}.kind", fault, "Set apiGroup, or the kind PersistentVolumeClaim.")
    else:
        texts.check(faults, f"{path}.apiGroup", origin.api_group, texts.subdomain)


# A valid volume has at least this number of unset sources.
_OTHERS: Final = len(model.SOURCES) - 1
_LONGEST_DRIVER: Final = 63
_MEBIBYTE: Final = 2**20 * quantity.NANO


def check_volumes(volumes: list[model.Volume], path: str, faults: Faults) -> dict[str, model.Volume]:
    """Returns the volumes by name."""
    by_name: dict[str, model.Volume] = {}
    for index, volume in enumerate(volumes):
        if problem := texts.label(volume.name):
            texts.note(faults, f"{path}[{index}].name", volume.name, problem, texts.SPELLING)
        elif volume.name in by_name:
            faults.add(f"{path}[{index}].name", f'there is another volume "{volume.name}"', f"Write {volume.name}-2.")
        by_name[volume.name] = volume
        if astuple(volume).count(None) < _OTHERS:
            names = [name for attribute, name in model.SOURCES if getattr(volume, attribute) is not None]
            fault = f"has both {names[0]} and {names[1]}, but a volume has only one source"
            faults.add(f"{path}[{index}]", fault, "Make two volumes of it, or remove one of them.", Kind.FORBIDDEN)
        elif volume.persistent_volume_claim is None:
            _source(volume, f"{path}[{index}]", faults)
    return by_name


def _source(volume: model.Volume, path: str, faults: Faults) -> None:
    if volume.config_map is not None:
        check_items(volume.config_map.items, f"{path}.configMap", faults)
    elif volume.empty_dir is not None:
        if (medium := volume.empty_dir.medium) and medium != "Memory" and not medium.startswith("HugePages"):
            fault = f'no node supports "{shown(medium)}", so the pods never start'
            faults.add(f"{path}.emptyDir.medium", fault, "Write Memory, or remove it.", advisory=True)
        if volume.empty_dir.size_limit is not None:
            _size_limit(volume.empty_dir.size_limit, f"{path}.emptyDir.sizeLimit", faults)
    elif volume.secret is not None:
        check_items(volume.secret.items, f"{path}.secret", faults)
    elif volume.host_path is not None:
        where = f"{path}.hostPath.path"
        texts.check(faults, where, volume.host_path.path, texts.without_steps_back, 'Leave out "..".')
    elif volume.downward_api is not None:
        check_downward(volume.downward_api.items, f"{path}.downwardAPI", faults)
    elif volume.projected is not None:
        _projected(volume.projected, f"{path}.projected", faults)
    elif volume.nfs is not None and not volume.nfs.path.startswith("/"):
        texts.note(faults, f"{path}.nfs.path", volume.nfs.path, "must start with /", f"Write /{volume.nfs.path}.")
    elif volume.csi is not None:
        _csi(volume.csi, f"{path}.csi", faults)
    elif volume.ephemeral is not None:
        check_claim(volume.ephemeral.volume_claim_template, f"{path}.ephemeral.volumeClaimTemplate", faults)


def _projected(source: model.ProjectedSource, path: str, faults: Faults) -> None:
    files: set[str] = set()
    for index, item in enumerate(source.sources or ()):
        where = f"{path}.sources[{index}]"
        if item.secret is not None:
            check_items(item.secret.items, f"{where}.secret", faults, files)
        if item.config_map is not None:
            check_items(item.config_map.items, f"{where}.configMap", faults, files)
        if item.downward_api is not None:
            check_downward(item.downward_api.items, f"{where}.downwardAPI", faults, files)
        if (token := item.service_account_token) is not None:
            texts.check(faults, f"{where}.serviceAccountToken.path", token.path, texts.file_inside, _INSIDE)
        if sum(kind is not None for kind in (item.secret, item.config_map, item.downward_api, token)) > 1:
            fix = "Make an item of each source."
            faults.add(where, "has several sources, but an item has only one", fix, Kind.FORBIDDEN)


def _size_limit(written: object, path: str, faults: Faults) -> None:
    try:
        amount = quantity.parse(written)
    except QuantityError:
        return
    if 0 < amount < _MEBIBYTE:
        faults.add(path, f"means {quantity.whole(amount)} bytes", "Write the unit, such as 8Gi.", advisory=True)


def _csi(source: model.Csi, path: str, faults: Faults) -> None:
    driver = source.driver
    if len(driver) > _LONGEST_DRIVER:
        fault = f"has {len(driver)} characters, at most {_LONGEST_DRIVER} are allowed"
        faults.add(f"{path}.driver", fault, texts.SPELLING)
    elif problem := texts.subdomain(driver.lower()):
        texts.note(faults, f"{path}.driver", driver, problem)
    if (secret := source.node_publish_secret_ref) is not None:
        where = f"{path}.nodePublishSecretRef.name"
        if not secret.name:
            faults.add(where, "is missing", such_as(where), Kind.REQUIRED)
        texts.check(faults, where, secret.name, texts.subdomain)
