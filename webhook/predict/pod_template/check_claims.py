"""Claims that come and go with the pod."""

from webhook.api import quantity
from webhook.api.quantity import QuantityError
from webhook.predict.pod_template import texts
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.labels import check_annotations, check_labels, check_selector
from webhook.predict.pod_template.volumes import ClaimSpec, ClaimTemplate, DataSource


def check_claim(template: ClaimTemplate, path: str, found: Faults) -> None:
    """Metadata, modes, storage, classes and data sources."""
    if (meta := template.metadata) is not None:
        check_labels(meta.labels or {}, f"{path}.metadata.labels", found)
        check_annotations(meta.annotations or {}, f"{path}.metadata.annotations", found)
        for field, value in (("name", meta.name), ("namespace", meta.namespace), ("finalizers", meta.finalizers)):
            if value:
                found.add(f"{path}.metadata.{field}", "cannot be set here", "Remove it.", Kind.FORBIDDEN)
    _spec(template.spec, f"{path}.spec", found)


def _spec(spec: ClaimSpec, path: str, found: Faults) -> None:
    modes = {*spec.access_modes}
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        found.add(f"{path}.accessModes", "ReadWriteOncePod goes with no other mode", "Keep one.", Kind.FORBIDDEN)
    _storage(spec, f"{path}.resources.requests[storage]", found)
    for field, name in (
        ("storageClassName", spec.storage_class_name),
        ("volumeAttributesClassName", spec.volume_attributes_class_name),
    ):
        if name and (problem := texts.subdomain(name)):
            texts.note(found, f"{path}.{field}", name, problem, "Correct the name.")
    check_selector(spec.selector, f"{path}.selector", found)
    for field, origin in (("dataSource", spec.data_source), ("dataSourceRef", spec.data_source_ref)):
        if origin is not None:
            _origin(origin, f"{path}.{field}", found)


def _storage(spec: ClaimSpec, path: str, found: Faults) -> None:
    requests = (spec.resources and spec.resources.requests) or {}
    if "storage" not in requests:
        found.add(path, "is missing", "Set it to what is needed, such as 100Gi.", Kind.REQUIRED)
    else:
        try:
            amount = quantity.parse(0 if requests["storage"] is None else requests["storage"])
        except QuantityError:
            amount = quantity.Quantity(1)
        if amount == 0:
            found.add(path, "is 0", "Set it to what is needed, such as 100Gi.")


def _origin(origin: DataSource, path: str, found: Faults) -> None:
    if not origin.api_group and origin.kind and origin.kind != "PersistentVolumeClaim":
        fault = f'"{shown(origin.kind)}" needs an apiGroup'
        found.add(f"{path}.kind", fault, "Set apiGroup, or the kind PersistentVolumeClaim.")
    elif origin.api_group and (problem := texts.subdomain(origin.api_group)):
        texts.note(found, f"{path}.apiGroup", origin.api_group, problem, "Correct the group.")
