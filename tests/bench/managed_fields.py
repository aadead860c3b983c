"""The managedFields that an API server records for a created MPIJob.

Format: structured-merge-diff's FieldsV1, https://kubernetes.io/docs/reference/using-api/server-side-apply/. A list
with keys in the CRD has an entry for each item. Any other list, and any mapping that is atomic in the CRD, is one
field.
"""

import json
from collections.abc import Mapping
from typing import Any

# The lists of a pod template that have keys (x-kubernetes-list-map-keys in the CRD).
LIST_KEYS = {
    "containers": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
# The mappings with a single owner (x-kubernetes-map-type: atomic in the CRD).
ATOMIC = frozenset({"configMap", "configMapKeyRef", "fieldRef", "imagePullSecrets", "resourceFieldRef", "secretKeyRef"})


def managed_fields(job: Mapping[str, Any]) -> dict[str, Any]:
    """`fieldsV1` of the manager that created `job`: labels, annotations and spec."""
    metadata = {key: value for key, value in job["metadata"].items() if key in {"labels", "annotations"}}
    return {"f:metadata": _of_fields(metadata), "f:spec": {".": {}, **_of_fields(job["spec"])}}


def _of_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {f"f:{name}": _of_value(name, value) for name, value in fields.items()}


def _of_value(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, list) and name in LIST_KEYS:
        return {".": {}, **{_key(item, LIST_KEYS[name]): _of_value(name, item) for item in value}}
    if isinstance(value, Mapping) and value and name not in ATOMIC:
        return {".": {}, **_of_fields(value)}
    return {}


def _key(item: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return "k:" + json.dumps({name: item[name] for name in names if name in item}, separators=(",", ":"))
