"""The JSON Schema of MPIJobs for editors: that of the CRD, with the bounds of a policy's rules.

A bound is in it where a rule refuses what is beyond. What depends on other fields, on the cluster or on who submits the
job is left to `check`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook import PROGRAM
from webhook.api import crd_schema, mpijob, names
from webhook.api.crd_schema import ANY, Shape
from webhook.api.mpijob import CLEAN_POD_POLICIES, IMPLEMENTATIONS, LAUNCHER, WORKER
from webhook.api.operator_checks import RESTART_POLICIES
from webhook.kit.settings import Action
from webhook.policy.in_force import Policy
from webhook.rules.upstream_contract import CREATION_POLICIES, MANAGERS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
ID: Final = "https://policy.training.openshift.io/v1/mpijob.schema.json"
Path = tuple[str, ...]
Schema = dict[str, Any]

_SPEC: Final = ("spec",)
_RUN_POLICY: Final = (*_SPEC, "runPolicy")
_ROLES: Final = (*_SPEC, "mpiReplicaSpecs")
_WORKERS: Final = (*_ROLES, WORKER, "replicas")
_DESCRIPTIONS: Final[Mapping[Path, str]] = {
    _SPEC: "What is run, and how.",
    _ROLES: "The pods: one Launcher, which runs mpirun, and the Workers, in which the ranks run.",
    (*_ROLES, LAUNCHER): "The pod that runs mpirun.",
    (*_ROLES, WORKER): "The pods in which the ranks run.",
    (*_ROLES, LAUNCHER, "replicas"): "There is one launcher.",
    _WORKERS: "How many workers.",
    (*_SPEC, "slotsPerWorker"): "Ranks for each worker, usually as many as it has GPUs. Default: 1.",
    (*_SPEC, "mpiImplementation"): "What the image brings. Default: OpenMPI.",
    (*_SPEC, "runLauncherAsWorker"): "The launcher runs ranks too, and counts as a worker. Default: false.",
    (*_SPEC, "launcherCreationPolicy"): "When the launcher is made. Default: AtStartup.",
    (*_SPEC, "sshAuthMountPath"): "Where the SSH key is mounted: .ssh in the home of the containers' user.",
    _RUN_POLICY: "How long the job may run, and what becomes of its pods.",
    (*_RUN_POLICY, "activeDeadlineSeconds"): "The job is ended after so many seconds.",
    (*_RUN_POLICY, "backoffLimit"): "How often the launcher is started again after a failure.",
    (*_RUN_POLICY, "cleanPodPolicy"): "Which pods are removed at the end: all, those that still run, or none.",
    (*_RUN_POLICY, "suspend"): "There are no pods while it is true. Queues set it.",
    (*_RUN_POLICY, "ttlSecondsAfterFinished"): "The launcher's Job is removed so many seconds after its end.",
}
_OPERATOR: Final = "upstream-contract"
_OF_THE_OPERATOR: Final[Mapping[Path, Schema]] = {
    _ROLES: {"required": [LAUNCHER]},
    (*_ROLES, LAUNCHER, "replicas"): {"const": 1},
    (*_ROLES, LAUNCHER, "restartPolicy"): {"enum": [*RESTART_POLICIES]},
    (*_ROLES, WORKER): {"required": ["replicas", "template"]},
    (*_ROLES, WORKER, "restartPolicy"): {"enum": [*RESTART_POLICIES]},
    _WORKERS: {"minimum": 1},
    (*_SPEC, "launcherCreationPolicy"): {"enum": [*CREATION_POLICIES]},
    (*_SPEC, "mpiImplementation"): {"enum": [*IMPLEMENTATIONS]},
    (*_SPEC, "slotsPerWorker"): {"minimum": 0},
    (*_RUN_POLICY, "activeDeadlineSeconds"): {"minimum": 0},
    (*_RUN_POLICY, "backoffLimit"): {"minimum": 0},
    (*_RUN_POLICY, "cleanPodPolicy"): {"enum": [*CLEAN_POD_POLICIES]},
    (*_RUN_POLICY, "managedBy"): {"enum": [*MANAGERS]},
    (*_RUN_POLICY, "ttlSecondsAfterFinished"): {"minimum": 0},
}
_CHOICES: Final[Mapping[str, Path]] = {
    "clean-pod-policy": (*_RUN_POLICY, "cleanPodPolicy"),
    "mpi-implementation": (*_SPEC, "mpiImplementation"),
}


def json_schema(policy: Policy) -> Schema:
    """The schema of jobs where this policy counts."""
    schema = _Writer(crd_schema.packaged().root).schema
    for path, text in _DESCRIPTIONS.items():
        _at(schema, path)["description"] = text
    for path, bound, told in _bounds(policy):
        node = _at(schema, path)
        node |= bound
        if told:
            node["description"] = f"{node.get('description', '')} {told}".strip()
    _at(schema, _SPEC).update(_counted(policy))
    schema["properties"] |= {"apiVersion": {"const": mpijob.API_VERSION}, "kind": {"const": "MPIJob"}}
    about = f"{mpijob.API_VERSION}, of {crd_schema.packaged().origin}; `{PROGRAM} check` says more."
    head = {"$schema": DIALECT, "$id": ID, "title": "MPIJob", "description": about}
    return {**head, **schema, "required": ["apiVersion", "kind", "metadata", "spec"]}


def _bounds(policy: Policy) -> Iterator[tuple[Path, Schema, str]]:
    """The field, its bound, and what is told of it besides."""
    if policy.action(_OPERATOR) is Action.DENY:
        yield from ((path, bound, "") for path, bound in _OF_THE_OPERATOR.items())
    for rule, path in _CHOICES.items():
        settings: Any = policy.settings(rule)
        if policy.action(rule) is Action.DENY:
            yield path, {"enum": [*settings.allowed]}, ""
    admitted = policy.admitted
    workers = admitted.workers
    told = f"{_ends(workers.least, workers.most)}, with the launcher where runLauncherAsWorker is true."
    bound = {"minimum": max(workers.least - 1, 1)} | ({} if workers.most is None else {"maximum": workers.most})
    yield _WORKERS, bound, told
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
    """The bounds of the workers where the launcher counts, and where it does not."""
    workers = policy.admitted.workers
    most = {} if workers.most is None else {"maximum": workers.most - 1}
    counts = {"properties": {"runLauncherAsWorker": {"const": True}}, "required": ["runLauncherAsWorker"]}
    return {
        "if": counts,
        "then": _of_workers(most),
        "else": _of_workers({"minimum": max(workers.least, 1)}),
    }


def _of_workers(bound: Schema) -> Schema:
    found = bound
    for key in reversed(_WORKERS[1:]):
        found = {"properties": {key: found}}
    return found


def _ends(least: int, most: int | None) -> str:
    return f"At least {least}" if most is None else f"{least} to {most}"


def _at(schema: Schema, path: Path) -> Schema:
    for key in path:
        schema = schema["properties"][key]
    return schema


class _Writer:
    """Writes shapes as JSON Schema: what is used in several places once, under `$defs`."""

    def __init__(self, root: Shape) -> None:
        self._used: Counter[int] = Counter()
        self._count(root)
        roles = root.fields[_SPEC[0]].fields[_ROLES[-1]]
        self._used.update(id(each) for each in (roles.values.fields.values() if roles.values else ()))  # for each role
        self._names: dict[int, str] = {}
        self._definitions: dict[str, Schema] = {}
        self.schema: Schema = {**self._object(root), "$defs": self._definitions}

    def _count(self, shape: Shape) -> None:
        self._used[id(shape)] += 1
        if self._used[id(shape)] == 1:
            for each in (*shape.fields.values(), shape.values, shape.items):
                if each is not None:
                    self._count(each)

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
        found: Schema = {"type": ["integer", "string"] if shape.type == "quantity" else shape.type}
        found |= {"enum": [*shape.choices]} if shape.choices else {}
        return found | ({"default": shape.default} if shape.default is not None else {})

    def _object(self, shape: Shape) -> Schema:
        found: Schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: self._of(each, name) for name, each in shape.fields.items()},
        }
        return found | ({"required": [*shape.required]} if shape.required else {})
