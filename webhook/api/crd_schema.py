"""The fields of an MPIJob and their types, from the CRD.

`mpijob_schema.json` belongs to the pinned release of mpi-operator; `make schema` writes it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pkgutil import get_data
from typing import Any, Final

FILE: Final = "mpijob_schema.json"
ANY: Final = "any"
TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "object": ((dict,), "a mapping"),
    "array": ((list,), "a list"),
    "string": ((str,), "text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "quantity": ((int, str), "text or a whole number"),
}
"""The Python types of each type in a schema, and the type's name in messages."""
EXAMPLES: Final = {
    "accessModes": "[ReadWriteOnce]", "action": "FailJob", "annotations": "{team: nlp}", "apiVersion": "v1",
    "claimName": "data", "containerPort": "8080",
    "containers": "[{name: main, image: <registry>/<name>:<tag>}]", "replicas": "2", "slotsPerWorker": "1",
    "devicePath": "/dev/block", "fieldPath": "metadata.name", "image": "<registry>/<name>:<tag>",
    "ip": "192.0.2.1", "kind": "MPIJob", "labels": "{team: nlp}", "maxSkew": "1", "mountPath": "/data",
    "name": "main", "operator": "In", "port": "8080",
    "fsGroup": "1000", "runAsGroup": "1000", "runAsUser": "1000",
    "priority": "0", "resource": "limits.cpu", "secretName": "data", "seconds": "30", "server": "nfs.example.com",
    "nodeSelector": "{kubernetes.io/arch: amd64}", "tolerations": "[{key: nvidia.com/gpu, operator: Exists}]",
    "env": "[{name: NCCL_DEBUG, value: INFO}]", "volumeMounts": "[{name: data, mountPath: /data}]",
    "volumes": "[{name: data, persistentVolumeClaim: {claimName: data}}]", "args": "[train.py]",
    "command": "[train]", "driver": "nfs.csi.k8s.io", "hostPath.path": "/data", "key": "token", "nfs.path": "/data",
    "path": "data", "resourceName": "cpu", "type": "RuntimeDefault", "value": "'1'",
    "topologyKey": "kubernetes.io/hostname", "weight": "1", "whenUnsatisfiable": "DoNotSchedule",
}  # fmt: skip
"""Example values by field name, or by the last two parts of the path."""


def example(field: str) -> str | None:
    return EXAMPLES.get(".".join(field.split(".")[-2:]), EXAMPLES.get(field.rpartition(".")[2]))


def such_as(field: str) -> str:
    text = example(field)
    return f"Add it, such as {field.rpartition('.')[2]}: {text}." if text else "Add it."


# The CRD does not describe the object's metadata. The API server defines it
# (https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/apis/meta/v1/types.go, ObjectMeta).
_TEXTS: Final = (
    "creationTimestamp", "deletionTimestamp", "generateName", "name", "namespace", "resourceVersion", "selfLink", "uid",
)  # fmt: skip
_OWNED_BY: Final = ("apiVersion", "kind", "name", "uid")
_OWNER: Final[dict[str, Any]] = {
    "properties": {
        **{name: {"type": "string"} for name in _OWNED_BY},
        "controller": {"type": "boolean"},
        "blockOwnerDeletion": {"type": "boolean"},
    },
    "required": [*_OWNED_BY],
}
_METADATA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in _TEXTS},
        "labels": {"additionalProperties": {"type": "string"}},
        "annotations": {"additionalProperties": {"type": "string"}},
        "finalizers": {"items": {"type": "string"}},
        "generation": {"type": "integer"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "ownerReferences": {"items": _OWNER},
        "managedFields": {"items": {}},
    },
}


@dataclass(frozen=True, slots=True)
class Shape:
    type: str
    """A type of OpenAPI, `quantity` (text or a whole number), or `any`."""
    fields: Mapping[str, "Shape"] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    values: "Shape | None" = None
    """The shape of the values of a mapping with arbitrary keys."""
    items: "Shape | None" = None
    keys: tuple[str, ...] = ()
    """The fields that together identify an item of a list."""
    choices: tuple[str, ...] = ()
    default: Any = None


@dataclass(frozen=True, slots=True)
class CrdSchema:
    origin: str
    root: Shape


@cache
def packaged() -> CrdSchema:
    written = json.loads(get_data(__package__, FILE) or b"")
    return CrdSchema(written["origin"], of_short_form(written["shapes"]))


def short_form(openapi: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """All distinct shapes of the schema. The last one is the shape of the whole object.

    A shape refers to other shapes by their index in the list, and to scalars by type.
    """
    shapes: dict[str, int] = {}

    def refer(node: Mapping[str, Any]) -> str | int:
        node = _resolved(node, definitions or {})
        if node.get("x-kubernetes-preserve-unknown-fields"):
            return ANY
        if node.get("x-kubernetes-int-or-string"):
            return "quantity"
        shape = _short(node, refer)
        return shapes.setdefault(json.dumps(shape), len(shapes)) if shape else str(node.get("type", ANY))

    refer({**openapi, "properties": {**openapi["properties"], "metadata": _METADATA}})
    return [json.loads(text) for text in shapes]


def of_short_form(entries: Iterable[Mapping[str, Any]]) -> Shape:
    shapes: list[Shape] = []
    for entry in entries:  # an entry refers to earlier entries only
        shapes.append(_shape(entry, shapes))
    return shapes[-1]


def _short(node: Mapping[str, Any], refer: Callable[[Mapping[str, Any]], str | int]) -> dict[str, Any]:
    if properties := node.get("properties"):
        shape: dict[str, Any] = {"fields": {name: refer(field) for name, field in sorted(properties.items())}}
        return {**shape, "required": sorted(node["required"])} if node.get("required") else shape
    if isinstance(values := node.get("additionalProperties"), Mapping):
        return {"values": refer(values)}
    if "items" in node:
        keys = node.get("x-kubernetes-list-map-keys")
        return {"items": refer(node["items"]), **({"keys": keys} if keys else {})}
    if node.get("type") != "string":
        return {}
    return {key: node[name] for key, name in (("choices", "enum"), ("default", "default")) if name in node}


def _resolved(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The definition to which `node` refers, or `node` itself. Schemas that a cluster publishes contain references."""
    parts = node.get("allOf")
    reference = node.get("$ref") or (parts[0].get("$ref") if parts and len(parts) == 1 else None)
    return definitions.get(reference.rpartition("/")[2], {}) if reference else node


def _shape(entry: Mapping[str, Any], earlier: list[Shape]) -> Shape:
    def at(reference: str | int) -> Shape:
        return earlier[reference] if isinstance(reference, int) else Shape(reference)

    if "fields" in entry:
        fields = {name: at(reference) for name, reference in entry["fields"].items()}
        return Shape("object", fields=fields, required=tuple(entry.get("required", ())))
    if "values" in entry:
        return Shape("object", values=at(entry["values"]))
    if "items" in entry:
        return Shape("array", items=at(entry["items"]), keys=tuple(entry.get("keys", ())))
    return Shape("string", choices=tuple(entry.get("choices", ())), default=entry.get("default"))
