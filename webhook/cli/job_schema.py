"""Checks a job in a file against the schema of MPIJobs, as the API server does before any rule.

For kubectl (`--validate=strict`, the default) the API server rejects unknown fields. For other clients it drops unknown
fields and sends a warning. It rejects a value of a wrong type for every client.
"""

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any, Final

from webhook.api.crd_schema import ANY, TYPES, CrdSchema, Shape, example, such_as
from webhook.api.mpijob import WORKER, meant_role, replica_path
from webhook.api.names import choose, closest_name
from webhook.api.untyped import mappings
from webhook.cli.files import Manifest, written_at
from webhook.cli.job_schema_places import GPU, Places, at
from webhook.cli.job_schema_values import accepts, is_of, meant, pair, scalar
from webhook.cli.limits import MAX_SCHEMA_FAULTS
from webhook.cli.policy import job_fields
from webhook.predict.pod_template.resources import MEANT_RESOURCES
from webhook.rules import CauseReason, Violation, shortened

_KINDS: Final[dict[type, str]] = {dict: "a mapping", list: "a list", str: "text"}
_OTHER_NAMES: Final = {
    **dict.fromkeys(("cmd", "entrypoint"), "command"), "environment": "env", "minmember": "minAvailable",
    **dict.fromkeys(("timeout", "time", "walltime"), "activeDeadlineSeconds"), "pvc": "persistentVolumeClaim",
    **dict.fromkeys(("retries", "maxretries"), "backoffLimit"), "mounts": "volumeMounts", "target": "mountPath",
    **dict.fromkeys(("nprocpernode", "ntaskspernode"), "slotsPerWorker"), "gpuspernode": GPU, **MEANT_RESOURCES,
    **dict.fromkeys(("replicacount", "count"), "replicas"),
}  # fmt: skip
_PASSES: Final = 3
_ENDING: Final = len("ReplicaSpecs")
_VOLUME: Final = re.compile(
    r"(\w+\.\w+\[[^\[\]]+\]\.template\.spec)\.(?:(volumes)|\w+\[\d+\]\.volumeMounts)\[\d+\]\.name"
)
_ANY: Final = Shape(ANY)


class SchemaVerdict:
    """The faults for which the API server would reject a job, and the corrected job, which the rules check."""

    def __init__(self, document: Mapping[str, Any], schema: CrdSchema, source: Manifest | None = None) -> None:
        self.violations: list[Violation] = []
        self.unconvertible: list[str] = []
        """Paths of values of a wrong type that cannot be converted. The rules do not see these values."""
        self.original_paths: dict[str, str] = {}
        """The path in the file of each renamed or moved field, by its corrected path. Outer fields come first."""
        self.fixed = copy.deepcopy(dict(document))
        self._unknown = f"is not a field of an MPIJob ({schema.origin}): kubectl rejects it, other clients drop it"
        self._source, self._places = source, Places(self.fixed, schema.root)
        for _ in range(_PASSES):  # a field may move to an object that was read before
            self._correct([self.fixed], 0, schema.root, "", "")
        self._complete(self.fixed, schema.root, "")

    def _correct(self, parent: Any, key: str | int, shape: Shape, path: str, field: str) -> None:
        """Convert the value at `key` in `parent` to the right type, and correct the inner values."""
        value = parent[key] = self._of_right_type(parent[key], shape, path, field)
        if isinstance(value, list) and shape.items is not None:
            for index in range(len(value)):
                self._correct(value, index, shape.items, f"{path}[{index}]", field)
            value[:] = [each for each in value if each is not None]
        elif isinstance(value, dict) and (shape.fields or shape.values):
            for name in [*value]:
                self._correct_field(value, name, shape, path)

    def _correct_field(self, parent: dict[str, Any], key: str, shape: Shape, path: str) -> None:
        """Rename, move or remove an unknown field, and correct its value."""
        value, where = parent.pop(key), at(path, key, shape)
        name = self._meant_name(key, value, parent, shape, path)
        if name is None:
            self._misplaced(key, value, where, path)
            return
        right = at(path, name, shape)
        if name != key:
            of_role = f'the operator does not know "{shortened(key)}" and ignores it'
            reason = CauseReason.NOT_SUPPORTED if shape.values else CauseReason.INVALID
            self._report(where, of_role if shape.values else self._unknown, f"Rename it to {name}.", reason)
            self.original_paths[right] = where
        if value is not None:
            parent[name] = value
            self._correct(parent, name, shape.values or shape.fields[name], right, name)
            if parent[name] is None:
                del parent[name]

    def _meant_name(self, key: str, given: Any, others: Mapping[str, Any], shape: Shape, path: str) -> str | None:
        """The role or field that the user means by `key`: `key` itself if it is known; None if the meaning is unclear.

        For example, `name` of a claim means claimName, and pytorchReplicaSpecs means mpiReplicaSpecs. The meant field
        must accept the value, and must not be among `others`.
        """
        if shape.values is not None:
            role = meant_role(key) if shape.values.fields else None
            return key if role is None or role in others else role
        if key in shape.fields or len(self.violations) >= MAX_SCHEMA_FAULTS:
            return key if key in shape.fields else None
        fitting = [name for name, each in shape.fields.items() if name not in others and accepts(each, given, name)]
        lower, items = key.lower(), given if isinstance(given, list) else []
        items = [each for each in items if isinstance(each, str | dict)]
        mounts = key == "volumes" and any("mountPath" in each or ":/" in each for each in items)
        other = "volumeMounts" if mounts else _OTHER_NAMES.get(lower, f"{key}s")
        if other in fitting:
            return other
        # A list accepts nearly every value by conversion, so a similar name is not enough.
        near = [name for name in fitting if shape.fields[name].type != "array" or isinstance(given, list)]
        ends = (each for each in fitting if each.lower().endswith(lower[-_ENDING:]) or key.endswith(each.title()))
        name = closest_name(key, near) or next(ends, None)
        is_here = name and (name.lower().endswith(lower) or not self._places.of(key, given, path))
        return name if is_here else None

    def _misplaced(self, key: str, value: Any, where: str, path: str) -> None:
        """Move a field that is valid elsewhere. Any other field is left out."""
        name, fix, places = _OTHER_NAMES.get(key.lower(), key), "Remove it.", list[str]()
        if value is not None and len(self.violations) < MAX_SCHEMA_FAULTS:
            places = self._places.of(name, value, path)
            fix = f"Move it to {' and to '.join(places)}." if places else fix
        workers = job_fields.get(self.fixed, f"{replica_path(WORKER)}.replicas")
        if places and key == "gpus" and path == "spec" and is_of(value, "integer") and is_of(workers, "integer"):
            value = -(-value // max(workers, 1))  # v1alpha1 has the number of GPUs of all workers together
            fix = f"Remove it, and set {places[0]} to {value}: the GPUs of each worker."
        for place in places:
            job_fields.put(self.fixed, place, copy.deepcopy(value))
            self.original_paths[place] = where
        self._report(where, self._unknown, fix)

    def _of_right_type(self, value: Any, shape: Shape, path: str, field: str) -> Any:
        """The value, or the value that is meant by a value of a wrong type; None if the meaning is unclear."""
        if is_of(value, shape.type):
            return self._of_pair(value, shape, path, field) if isinstance(value, dict) and len(value) == 1 else value
        expected = TYPES[shape.type][1]
        given = _shown(value) if isinstance(value, int | float) else _KINDS.get(type(value), "empty")
        of_texts = value is not None and (
            field == "env" or "string" in {shape.type, shape.values and shape.values.type}
        )
        written = self._written(path, value) if of_texts else value
        right = written if is_of(written, shape.type) else meant(written, shape, field)
        if shape.type == "integer" and isinstance(value, str) and "econds" not in field:
            right = 0 if field == "runAsUser" and value == "root" else scalar(value, "number")
        if right is None:
            such = None if path.endswith("]") else example(path)
            fix = f"Write {such}, or {expected} of your own." if such else f"Remove it, or write {expected}."
            self.unconvertible.append(path)
        elif shape.type == "quantity" and 0 < value < 1000:
            right, fix = _fraction(value, path)
        elif len(json.dumps(right)) > 300 and (right == [value] or isinstance(value, list)):
            fix = 'Put "- " before its first field.' if right == [value] else "Remove the dashes before its fields."
        else:
            fix = f"Write {_shown(right)}{' in quotes' if isinstance(value, float) and isinstance(right, str) else ''}."
        if right == [value]:
            self.original_paths[f"{path}[0]"] = path
        self._report(path, f"must be {expected}, not {given}", fix)
        return right

    def _of_pair(self, value: dict[str, Any], shape: Shape, path: str, field: str) -> dict[str, Any]:
        """The item of a list that is meant by `NAME: VALUE`; the value itself if its key may mean a field."""
        written = self._written(path, value) if field == "env" else value
        # `written` may have invalid fields of the file, which are not in `value`.
        [(name, each)] = (written if len(written) == 1 else value).items()
        item = pair(name, each, shape, field)
        if item is None or name in shape.fields or self._meant_name(name, each, {}, shape, path):
            return value
        self._report(path, f"has no {next(iter(item))}", f"Write {_shown(item)}.")
        return item

    def _written(self, path: str, value: Any) -> Any:
        """The value with numbers and booleans as their text in the file, such as 3.10 for 3.1."""
        if self._source is None or len(self.violations) >= MAX_SCHEMA_FAULTS:
            return value
        written = written_at(replace(self._source, moved=self.original_paths), path)
        return written if isinstance(written, type(value) if isinstance(value, dict | list) else str) else value

    def _complete(self, value: Any, shape: Shape, path: str) -> Any:
        """Report and correct missing fields, unsupported values and duplicates."""
        if isinstance(value, list) and shape.items is not None:
            value = [self._complete(each, shape.items, f"{path}[{index}]") for index, each in enumerate(value)]
            self._duplicates(value, shape.items.fields, shape.keys, path)
        elif shape.choices and value not in shape.choices:
            fix = choose(str(value), shape.choices)
            self._report(path, f'"{shortened(str(value))}" is not supported', fix, CauseReason.NOT_SUPPORTED)
            return next((choice for choice in shape.choices if fix == f"Write {choice}."), value)
        for key, each in value.items() if isinstance(value, dict) else ():
            value[key] = self._complete(each, shape.values or shape.fields.get(key, _ANY), at(path, key, shape))
        for name in shape.required:
            field, where = shape.fields.get(name, _ANY), at(path, name, shape)
            if name not in value and field.default is None:
                partner = self._partner(where)
                fix = f"Add name: {partner}." if partner else such_as(where)
                self._report(where, "is missing", fix, CauseReason.REQUIRED)
                value |= {name: text} if field.type == "string" and (text := partner or example(where)) else {}
        return value

    def _duplicates(self, items: list[Any], fields: Mapping[str, Shape], keys: tuple[str, ...], path: str) -> None:
        """Report items with equal values of `keys`, at the path at which the rules report such items."""
        seen: set[str] = set()
        for index, item in enumerate(items if keys else ()):
            identity = json.dumps([item.get(key, fields[key].default) for key in keys])[1:-1]
            if identity in seen:
                where, fix = f"{path}[{index}].{keys[0]}", "Change one of the two, or leave it out."
                self._report(where, f"{shortened(identity, 40)} is there twice", fix)
            seen.add(identity)

    def _partner(self, path: str) -> str | None:
        """The name that is missing at `path`; None if it is unclear.

        A volume gets the name of a mount that has no volume. A mount gets the name of a volume that has no mount.
        """
        of_pod = _VOLUME.fullmatch(path)
        pod = job_fields.get(self.fixed, of_pod[1]) if of_pod else {}
        mounts = [mount for each in mappings(pod.get("containers")) for mount in mappings(each.get("volumeMounts"))]
        names = [[str(each.get("name") or "") for each in kind] for kind in (mappings(pod.get("volumes")), mounts)]
        own, others = names if of_pod and of_pod[2] else reversed(names)
        return next((name for name in others if name and name not in own), None)

    def _report(self, path: str, fault: str, fix: str, reason: CauseReason = CauseReason.INVALID) -> None:
        if len(self.violations) < MAX_SCHEMA_FAULTS:
            self.violations.append(Violation(shortened(path, 300), fault, fix, reason))


def _fraction(value: float, path: str) -> tuple[int | str, str]:
    """(the quantity that is meant by a number such as 0.5, the fix)."""
    if path.endswith(("[cpu]", ".cpu")):
        return str(value), f'Write "{value}" in quotes, or {round(value * 1000)}m.'
    if "/" in path:  # extended resources such as nvidia.com/gpu are whole numbers
        return ceil(value), f"Write {ceil(value)}."
    return f"{round(value * 1024)}Mi", f"Write {round(value * 1024)}Mi, or {round(value * 1000)}M."


def _shown(value: Any) -> str:
    """The value as JSON, which is also YAML."""
    return shortened(json.dumps(value, ensure_ascii=False), 300)
