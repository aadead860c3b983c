"""The JSON Schema of MPIJobs for editors: the schema of the CRD, with limits from the rules of a policy.

Rules that depend on several fields, on the cluster or on the user are left to the command `check`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pkgutil import get_data
from typing import Any, Final

from webhook import PROGRAM
from webhook.api import crd_schema, mpijob, names, yaml
from webhook.api.crd_schema import ANY, Shape
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.kit.settings import Action
from webhook.policy.in_force import Policy

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
ID: Final = "https://policy.training.openshift.io/v1/mpijob.schema.json"
Path = tuple[str, ...]
Schema = dict[str, Any]

_SPEC: Final = ("spec",)
_RUN_POLICY: Final = (*_SPEC, "runPolicy")
_ROLES: Final = (*_SPEC, "mpiReplicaSpecs")
_WORKERS: Final = (*_ROLES, WORKER, "replicas")
_OPERATOR: Final = "upstream-contract"
_CHOICES: Final[Mapping[str, Path]] = {
    "clean-pod-policy": (*_RUN_POLICY, "cleanPodPolicy"),
    "mpi-implementation": (*_SPEC, "mpiImplementation"),
}


def json_schema(policy: Policy) -> Schema:
    schema = _Writer(crd_schema.packaged().root).schema
    descriptions, bounds_of_operator = yaml.load_all(get_data(__package__, "job_document_schema.yaml") or b"")
    _add(schema, descriptions)
    if policy.action(_OPERATOR) is Action.DENY:
        _add(schema, bounds_of_operator)
    for path, bound, note in _bounds(policy):
        node = _at(schema, path)
        node |= bound
        if note:
            node["description"] = f"{node.get('description', '')} {note}".strip()
    _at(schema, _SPEC).update(_counted(policy))
    schema["properties"] |= {"apiVersion": {"const": mpijob.API_VERSION}, "kind": {"const": "MPIJob"}}
    about = f"{mpijob.API_VERSION}, of {crd_schema.packaged().origin}; `{PROGRAM} check` says more."
    head = {"$schema": DIALECT, "$id": ID, "title": "MPIJob", "description": about}
    return {**head, **schema, "required": ["apiVersion", "kind", "metadata", "spec"]}


def _bounds(policy: Policy) -> Iterator[tuple[Path, Schema, str]]:
    for rule, path in _CHOICES.items():
        settings: Any = policy.settings(rule)
        if policy.action(rule) is Action.DENY:
            yield path, {"enum": [*settings.allowed]}, ""
    admitted = policy.admitted
    workers = admitted.workers
    ends = f"At least {workers.least}" if workers.most is None else f"{workers.least} to {workers.most}"
    note = f"{ends}, including the launcher if runLauncherAsWorker is true."
    bound = {"minimum": max(workers.least - 1, 1)} | ({} if workers.most is None else {"maximum": workers.most})
    yield _WORKERS, bound, note
    if workers.least > 1:
        yield _ROLES, {"required": [LAUNCHER, WORKER]}, ""
    yield (*_SPEC, "slotsPerWorker"), {"minimum": admitted.slots.least}, ""
    if (most := admitted.seconds.most) is not None:
        yield (*_RUN_POLICY, "activeDeadlineSeconds"), {"minimum": 1, "maximum": most}, f"At most {most} here."
    settings = policy.settings("name-length")
    if policy.action("name-length") is Action.DENY:
        room = names.DNS_LABEL_MAX_LENGTH - len(f"-worker-{settings.scale_to - 1}")
        yield ("metadata", "name"), {"maxLength": room}, f"At most {room} characters."


def _counted(policy: Policy) -> Schema:
    """The limits on `replicas` of the Worker. With runLauncherAsWorker, the launcher counts as one more worker."""
    workers = policy.admitted.workers
    most = {} if workers.most is None else {"maximum": workers.most - 1}
    counts = {"properties": {"runLauncherAsWorker": {"const": True}}, "required": ["runLauncherAsWorker"]}
    return {
        "if": counts,
        "then": _of_workers(most),
        "else": _of_workers({"minimum": max(workers.least, 1)}),
    }


def _of_workers(bound: Schema) -> Schema:
    schema = bound
    for key in reversed(_WORKERS[1:]):
        schema = {"properties": {key: schema}}
    return schema


def _add(schema: Schema, more: Schema) -> None:
    for name, part in more.get("properties", {}).items():
        _add(schema["properties"][name], part)
    schema |= {key: value for key, value in more.items() if key != "properties"}


def _at(schema: Schema, path: Path) -> Schema:
    for key in path:
        schema = schema["properties"][key]
    return schema


class _Writer:
    """Writes shapes as JSON Schema. A shape that is used several times is written once, in `$defs`."""

    def __init__(self, root: Shape) -> None:
        self._used: Counter[int] = Counter()
        self._count(root)
        roles = root.fields[_SPEC[0]].fields[_ROLES[-1]]
        # Launcher and Worker use the same shapes.
        self._used.update(id(field) for field in (roles.values.fields.values() if roles.values else ()))
        self._names: dict[int, str] = {}
        self._definitions: dict[str, Schema] = {}
        self.schema: Schema = {**self._object(root), "$defs": self._definitions}

    def _count(self, shape: Shape) -> None:
        self._used[id(shape)] += 1
        if self._used[id(shape)] == 1:
            for inner in filter(None, (*shape.fields.values(), shape.values, shape.items)):
                self._count(inner)

    def _of(self, shape: Shape, name: str) -> Schema:
        if not shape.fields or self._used[id(shape)] == 1:
            return self._written(shape, name)
        if id(shape) not in self._names:
            free = (f"{name}{number}" for number in ("", *range(2, 100)) if f"{name}{number}" not in self._definitions)
            self._names[id(shape)] = new = next(free)
            self._definitions[new] = {}
            self._definitions[new] = self._object(shape)
        return {"$ref": f"#/$defs/{self._names[id(shape)]}"}

    def _written(self, shape: Shape, name: str) -> Schema:
        if shape.fields:
            return self._object(shape)
        if name == _ROLES[-1] and shape.values is not None:
            roles = {role: self._object(shape.values) for role in (LAUNCHER, WORKER)}
            return {"type": "object", "properties": roles, "additionalProperties": False}
        if shape.values is not None:
            return {"type": "object", "additionalProperties": self._of(shape.values, name)}
        if shape.items is not None:
            return {"type": "array", "items": self._of(shape.items, name)}
        if shape.type == ANY:
            return {}
        schema: Schema = {"type": ["integer", "string"] if shape.type == "quantity" else shape.type}
        schema |= {"enum": [*shape.choices]} if shape.choices else {}
        return schema | ({"default": shape.default} if shape.default is not None else {})

    def _object(self, shape: Shape) -> Schema:
        schema: Schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: self._of(field, name) for name, field in shape.fields.items()},
        }
        return schema | ({"required": [*shape.required]} if shape.required else {})
