"""Checks a job in a file against the schema of MPIJobs, like the API server does before any rule.

For kubectl (`--validate=strict`, the default) the API server rejects unknown fields. For other clients it drops unknown
fields and sends a warning. It rejects a value of a wrong type for every client.
"""

import json
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from math import ceil, isfinite
from typing import Any, Final, NamedTuple

from webhook.api import duration, shell
from webhook.api.crd_schema import ANY, TYPES, CrdSchema, Shape, example, such_as
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import WORKER, meant_role, replica_path
from webhook.api.names import choose, closest_name, corrected, dns_1123_label_problem
from webhook.api.quantity import IN_WORDS
from webhook.api.untyped import mappings
from webhook.cli.files import Manifest, written_at
from webhook.cli.limits import MAX_SCHEMA_FAULTS
from webhook.cli.policy import job_fields
from webhook.predict.pod_template.resources import MEANT_RESOURCES
from webhook.rules import CauseReason, Violation, shortened

_KINDS: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_BOOLEANS: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
_WHOLE: Final = re.compile(r"\s*(-?[0-9]{1,9})(?:\.0)?(?:\s+[A-Za-z]+|[A-Za-z]{3,}|x)?\s*")
_GPU: Final = "nvidia.com/gpu"
_WORKERS: Final = f"{replica_path(WORKER)}.replicas"
_GPUS: Final = f"{replica_path(WORKER)}.template.spec.containers[0].resources.limits[{_GPU}]"
_OTHER_NAMES: Final = {
    "cmd": "command", "entrypoint": "command", "environment": "env", "pvc": "persistentVolumeClaim",
    **dict.fromkeys(("timeout", "time", "walltime"), "activeDeadlineSeconds"), "retries": "backoffLimit",
    "maxretries": "backoffLimit", "target": "mountPath", "nprocpernode": "slotsPerWorker",
    "ntaskspernode": "slotsPerWorker", "gpuspernode": _GPU, **MEANT_RESOURCES, "replicacount": "replicas",
    "count": "replicas",
}  # fmt: skip
_ENDING: Final = len("ReplicaSpecs")
_PARTS: Final = re.compile("([=:])")
_PAIR: Final = re.compile(r"(?<![^\s,=:])([^\s,=:]++)\s*+[=:]\s*+([^\s,=:]++)")
_TEXT: Final = Shape("string")
_TEXTS: Final = Shape("object", values=_TEXT)
_RESOURCES: Final = {"cpu", "memory", "storage", "ephemeral-storage"}
_OF_METADATA: Final = {"annotations", "labels"}
_WAY: Final = {"spec", "template", "containers", "mpiReplicaSpecs", "resources"}
"""Fields that lead to a pod, its container, and the resources of the container."""


class _Around(NamedTuple):
    """An object that encloses the field that is being read."""

    value: Mapping[str, Any]
    shape: Shape
    path: str


class SchemaVerdict:
    """The fields of a job that the API server would reject, and the job with these fields fixed, for the rules."""

    def __init__(self, document: Mapping[str, Any], schema: CrdSchema, source: Manifest | None = None) -> None:
        self.violations: list[Violation] = []
        self.unconvertible: list[str] = []
        """Paths of values of a wrong type that cannot be converted. The rules do not see them."""
        self.original_paths: dict[str, str] = {}
        """The path in the file of each renamed or moved field, by its corrected path. Outer fields come first."""
        self._unknown = f"is not a field of an MPIJob ({schema.origin}): kubectl rejects it, other clients drop it"
        self._source = source
        self._around: list[_Around] = []
        self._moved: dict[str, Any] = {}
        self._missing: dict[str, str] = {}
        self.fixed = self._object(dict(document), schema.root, "")
        for path, value in reversed(self._moved.items()):
            inner = {f"{path}[{key}]": each for key, each in value.items()} if isinstance(value, dict) else {}
            for where, each in (inner or {path: value}).items():
                job_fields.put(self.fixed, where, each)
        for where, fix in self._missing.items():
            if not any(path.startswith(where) for path in self._moved):
                self._report(where, "is missing", fix, CauseReason.REQUIRED)

    def _object(self, value: dict[str, Any], shape: Shape, path: str) -> dict[str, Any]:
        if shape.values is not None:
            inner, read = shape.values, dict[str, Any]()
            for key, each in value.items():
                role = (meant_role(key) if inner.fields else None) or key
                role = key if role in value or role in read else role
                where, right = f"{path}[{key}]", f"{path}[{role}]"
                if role != key:
                    fault = f'the operator does not know "{shortened(key)}" and ignores it'
                    self._report(where, fault, f"Rename it to {role}.", CauseReason.NOT_SUPPORTED)
                    self.original_paths[right] = where
                if each is not None:
                    read[role] = self._value(each, inner, where)
                self._moved = {place.replace(where, right): moved for place, moved in self._moved.items()}
            return read
        fixed: dict[str, Any] = {}
        self._around.append(_Around(value, shape, path))
        for key, each in value.items():
            where = f"{path}[{key}]" if "." in key else _joined(path, key)
            name = key if key in shape.fields else self._meant_field(key, value, shape)
            if name is not None:
                if name != key:
                    self._report(where, self._unknown, f"Rename it to {name}.")
                    self.original_paths[_joined(path, name)] = where
                if each is not None:
                    fixed[name] = self._value(each, shape.fields[name], where)
            elif each is not None and (homes := self._homes(_OTHER_NAMES.get(key.lower(), key), each)):
                self._report(where, self._unknown, f"Move it to {' and to '.join(homes)}.")
                self.original_paths |= dict.fromkeys(homes, where)
                moved = {there: self._value(each, field, there) for there, field in homes.items()}
                self._moved |= moved
            else:
                self._report(where, self._unknown, self._instead(key, each))
        for name in shape.required:
            field = shape.fields.get(name, shape)
            if name not in fixed and field.default is None:
                where, partner = _joined(path, name), self._partner(path) if name == "name" else None
                self._missing[where] = f"Add name: {partner}." if partner else such_as(where)
                fixed[name] = (partner or example(where)) if field.type == "string" else None
        self._around.pop()
        return {key: each for key, each in fixed.items() if each is not None}

    def _partner(self, path: str) -> str | None:
        """The name of a mount without a volume for the volume at `path`, or of a volume without a mount for a mount."""
        pod = next((each.value for each in self._around if "containers" in each.shape.fields), {})
        items = [mount for each in mappings(pod.get("containers")) for mount in mappings(each.get("volumeMounts"))]
        pair = [{each.get("name"): None for each in all_} for all_ in (items, mappings(pod.get("volumes")))]
        others, same = reversed(pair) if ".volumeMounts[" in path else pair
        return next((str(name) for name in others if name and name not in same), None) if "olume" in path else None

    def _meant_field(self, key: str, value: dict[str, Any], shape: Shape) -> str | None:
        """The field that is probably meant by an unknown `key`. It must not be set, and it must accept the value.

        For example, `name` of a claim means claimName, and pytorchReplicaSpecs means mpiReplicaSpecs.
        """
        if len(self.violations) >= MAX_SCHEMA_FAULTS:
            return None
        given, lower, path = value[key], key.lower(), self._around[-1].path
        free = [name for name in shape.fields if name not in value and _joined(path, name) not in self._moved]
        fitting = {name: shape.fields[name].type for name in free if _takes(shape.fields[name], given)}
        if (other := _OTHER_NAMES.get(lower, f"{key}s")) in fitting:
            return other
        listed = given if isinstance(given, list) else ()
        of_items = {field for each in listed if _is(each, "object") for field in each}
        of_items |= {"mountPath" for each in listed if _is(each, "string") and ":/" in each}
        able = [name for name in fitting if (item := shape.fields[name].items) and of_items <= item.fields.keys()]
        if of_items and len(able) == 1:
            return able[0]
        # A list or a mapping accepts nearly every value by conversion. So for a field of these types a similar name is
        # not enough.
        near = [name for name, kind in fitting.items() if kind not in {"array", "object"} or _is(given, kind)]
        name = closest_name(key, near) or next(
            (each for each in fitting if each.lower().endswith(lower[-_ENDING:]) or key.endswith(each.title())), None
        )
        return name if name and (name.lower().endswith(lower) or not self._homes(key, given)) else None

    def _homes(self, key: str, value: Any) -> dict[str, Shape]:
        """The paths where the field is valid: in an enclosing object, in an object below it, or in each role."""
        of_job = len(self._around) == 2  # the object is the spec or the metadata of the job
        if key == QUEUE_NAME or (of_job and key in {"queueName", "queue"}):
            return {f"metadata.labels[{QUEUE_NAME}]": _TEXT}
        if key == _GPU and of_job:  # the GPUs of all workers, as in MPIJobs of v1alpha1
            return {}
        for around in reversed(self._around):
            if key in _OF_METADATA and (metadata := _metadata(around)):
                return {_joined(metadata, key): _TEXTS}
            level = [around]
            while level:
                places = {_joined(each.path, at): field for each in level for at, field in _places(key, value, each)}
                if len(places) == len(level) and places.keys().isdisjoint(self._moved):
                    return places
                level = [] if places else [below for each in level for below in _below(each)]
        return {}

    def _instead(self, key: str, value: Any) -> str:
        """The fix for a field without a place in MPIJobs."""
        if _OTHER_NAMES.get(key.lower()) != _GPU:
            return "Remove it."
        count, workers = (job_fields.get(self._around[0].value, path) for path in (_GPUS, _WORKERS))
        if count is not None or _GPUS in self._moved:
            return f"Remove it: {_GPUS} is the number of each worker."
        shared = key == "gpus" and _is(value, "integer") and _is(workers, "integer") and workers > 0
        self._moved[_GPUS] = count = -(-value // workers) if shared else value
        return f"Remove it, and set {_GPUS} to {count}: the GPUs of each worker."

    def _value(self, value: Any, shape: Shape, path: str) -> Any:
        if shape.type == ANY:
            return value
        if not _is(value, shape.type):
            return self._of_wrong_type(value, shape, path)
        names = shape.fields.keys()
        if isinstance(value, dict) and names >= {"name", "value"} and not value.keys() & names:
            value = (_listed(value, shape) or [value])[0]
            self._report(path, "has no name", f"Write {_shown(value)}.")
        if isinstance(value, dict) and "secretRef" in names and len(value) == 1:
            [(kind, each)] = value.items()
            reference = "secretRef" if "secret" in kind.lower() else "configMapRef"
            if kind not in names and not kind.endswith("Ref"):
                value = {reference: each if isinstance(each, dict) else {"name": each}}
                self._report(path, "names no source of variables", f"Write {_shown(value)}.")
        if isinstance(value, dict):
            return self._object(value, shape, path) if shape.fields or shape.values is not None else value
        if isinstance(value, list) and shape.items is not None:
            inner = shape.items
            read = (self._value(each, inner, f"{path}[{index}]") for index, each in enumerate(value))
            items = [each for each in read if each is not None]
            self._duplicates(items, shape, path)
            return items
        if shape.choices and value not in shape.choices:
            fix = choose(str(value), shape.choices)
            self._report(path, f'"{shortened(str(value))}" is not supported', fix, CauseReason.NOT_SUPPORTED)
            return next((choice for choice in shape.choices if fix == f"Write {choice}."), value)
        return value

    def _of_wrong_type(self, value: Any, shape: Shape, path: str) -> Any:
        expected, shown = _words(shape.type), _shown(value)
        given = shown if isinstance(value, int | float) else _words(_KINDS.get(type(value), "empty"))
        meant = _meant(value, shape)
        right = next((new for new, old in self.original_paths.items() if old == path), path)
        if shape.type == "integer" and isinstance(value, str) and "econds" not in right.rpartition(".")[2]:
            meant = 0 if right.endswith("runAsUser") and value == "root" else _converted(value, "number")
        if self._source and shape.type == "string" and len(self.violations) < MAX_SCHEMA_FAULTS:
            meant = written_at(self._source, path, value) or meant
        if meant is None:
            such = example(right)
            fix = f"Write {such}, or {expected} of your own." if such else f"Remove it, or write {expected}."
            self.unconvertible.append(path)
        elif shape.type == "quantity" and 0 < value < 1000:
            meant, fix = _fraction(value, path)
        elif len(json.dumps(meant)) > 300 and (meant == [value] or isinstance(value, list)):
            fix = 'Put "- " before its first field.' if meant == [value] else "Remove the dashes before its fields."
        else:
            fix = f"Write {_shown(meant)}{' in quotes' if isinstance(value, float) and isinstance(meant, str) else ''}."
        if meant == [value]:
            self.original_paths[f"{path}[0]"] = path
        self._report(path, f"must be {expected}, not {given}", fix)
        return None if meant is None else self._value(meant, shape, path)

    def _duplicates(self, items: list[Any], shape: Shape, path: str) -> None:
        seen: set[tuple[str, ...]] = set()
        for index, item in enumerate(items if shape.keys else ()):
            if not isinstance(item, dict) or shape.items is None:
                continue
            defaults = {key: shape.items.fields[key].default for key in shape.keys if key in shape.items.fields}
            identity = tuple(json.dumps(item.get(key, defaults.get(key))) for key in shape.keys)
            if identity in seen:
                # The rules report duplicates at the same path.
                fault = f"{shortened(', '.join(identity), 40)} is there twice"
                self._report(f"{path}[{index}].{shape.keys[0]}", fault, "Change one of the two, or leave it out.")
            seen.add(identity)

    def _report(self, path: str, fault: str, fix: str, reason: CauseReason = CauseReason.INVALID) -> None:
        if len(self.violations) < MAX_SCHEMA_FAULTS:
            self.violations.append(Violation(shortened(path, 300), fault, fix, reason))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}".lstrip(".")


def _below(around: _Around) -> Iterator[_Around]:
    """The objects below `around` that lead to a pod or its container. They may be missing in the job."""
    for name, field in around.shape.fields.items():
        if name not in _WAY or (first := _first(name, around)) is None:
            continue
        inner = first._replace(path=_joined(around.path, first.path))
        if (role := field.values) is None:
            yield inner
        else:
            yield from (
                _Around(each, role, f"{inner.path}[{key}]") for key, each in inner.value.items() if _is(each, "object")
            )


def _first(name: str, around: _Around) -> _Around | None:
    """The field `name`, or the only item of the list in it. A missing object counts as empty.

    None for anything else, and for the `resources` of a pod: users mean those of a container.
    """
    path, shape, present = name, around.shape.fields[name], around.value.get(name)
    if shape.items is not None and (name == "containers" if present is None else _is(present, "array")):
        path, shape, present = f"{name}[0]", shape.items, present[0] if present and len(present) == 1 else present
    if isinstance(present, list) or _is_of_pod(name, around.shape):
        return None
    return _Around(present if isinstance(present, dict) else {}, shape, path)


def _metadata(around: _Around) -> str | None:
    """The path of the metadata of an object, or of the metadata of its pod template."""
    places = ("metadata", "template.metadata")
    return next((_joined(around.path, at) for at in places if at.split(".")[0] in around.shape.fields), None)


def _places(key: str, value: Any, around: _Around) -> list[tuple[str, Shape]]:
    """(path, shape) of each field `key` in an object or in its fields that is not set and accepts the value."""
    if own := around.shape.fields.get(key):
        free = key not in around.value and _takes(own, value) and not _is_of_pod(key, around.shape)
        return [(key, own)] if free else []
    places: list[tuple[str, Shape]] = []
    for name in around.shape.fields if "[" not in key and "]" not in key else ():
        first = _first(name, around)
        if first is None or key in first.value or (name == "metadata" and around.path):
            continue
        path, inner = first.path, first.shape
        if inner.values is not None and _is_entry(key, value, name, inner.values, around.shape):
            places.append((f"{path}[{key}]" if "." in key or inner.values.fields else f"{path}.{key}", inner.values))
        elif key in inner.fields and _takes(inner.fields[key], value) and not _is_of_pod(key, inner):
            places.append((f"{path}.{key}", inner.fields[key]))
    return places


def _is_of_pod(name: str, shape: Shape) -> bool:
    """Whether the field is the `resources` of a pod. Users mean the `resources` of a container."""
    return name == "resources" and "containers" in shape.fields


def _is_entry(key: str, value: Any, name: str, shape: Shape, around: Shape) -> bool:
    """Whether `key` belongs in a mapping that accepts any key: a role, or the amount of a resource."""
    if shape.fields:
        return meant_role(key) is not None and isinstance(value, dict)
    meant = "requests" if key == "storage" else "limits"
    return (
        name == meant
        and (key in _RESOURCES or ("/" in key and str(value)[:1].isdigit()))
        and {"limits", "requests"} <= around.fields.keys()
        and _is(value, shape.type)
    )


def _is(value: Any, kind: str) -> bool:
    """Whether a value is of the type `kind`; always True for a type that is not in TYPES."""
    return kind not in TYPES or (isinstance(value, TYPES[kind][0]) and isinstance(value, bool) == (kind == "boolean"))


def _words(kind: str) -> str:
    return TYPES[kind][1] if kind in TYPES else kind


def _takes(shape: Shape, value: Any) -> bool:
    """Whether the field accepts the value, or the value after a conversion."""
    return value is None or shape.type == ANY or _is(value, shape.type) or _meant(value, shape) is not None


def _meant(value: Any, shape: Shape) -> Any:
    """The value that is meant by a value of the wrong type, or None if it is unclear."""
    if shape.type == "array" and shape.items is not None:
        return _listed(value, shape.items)
    if shape.type == "string" and isinstance(value, dict) and value.keys() == {"repository", "tag"}:
        return "{repository}:{tag}".format(**value) if all(_is(each, "string") for each in value.values()) else None
    return _mapped(value, shape) if shape.type == "object" else _converted(value, shape.type)


def _fraction(value: float, path: str) -> tuple[int | str, str]:
    """(the quantity that is meant by a number such as 0.5, the fix)."""
    if path.endswith(("[cpu]", ".cpu")):
        return str(value), f'Write "{value}" in quotes, or {round(value * 1000)}m.'
    if "/" in path:  # extended resources such as nvidia.com/gpu are whole numbers
        return ceil(value), f"Write {ceil(value)}."
    return f"{round(value * 1024)}Mi", f"Write {round(value * 1024)}Mi, or {round(value * 1000)}M."


def _converted(value: Any, kind: str) -> Any:
    if kind in {"string", "quantity"} and isinstance(value, int | float):
        return json.dumps(value)
    if kind == "boolean" and isinstance(value, str | int):
        return _BOOLEANS.get(str(value).strip().lower())
    if kind == "integer" and isinstance(value, str):
        with suppress(duration.DurationError):  # every duration in a job is in seconds
            return duration.parse(duration.meant(value) or "")
    if kind in {"integer", "number"} and isinstance(value, str):
        number = _WHOLE.fullmatch(value)
        digits = number[1] if number else IN_WORDS.get(value.strip().lower())
        return int(digits) if digits else None
    if kind == "integer" and isinstance(value, float) and isfinite(value):
        return round(value)
    return None


def _shown(value: Any) -> str:
    """The value as JSON, which is also YAML."""
    return shortened(json.dumps(value, ensure_ascii=False), 300)


def _mapped(value: Any, shape: Shape) -> dict[str, Any] | None:
    """The object that is meant by its name, its port, `NAME=VALUE`, or a list of its entries; None if unclear."""
    fields = shape.fields
    if isinstance(value, list) and "add" in fields:  # the object is `capabilities`
        return {"add": value}
    entries = _entries(value)
    if entries and (shape.values is not None or entries.keys() <= fields.keys()):
        return {key: _converted(each, (shape.values or fields[key]).type) or each for key, each in entries.items()}
    port = value if _is(value, "integer") else _converted(value, "integer")
    if port is not None and (name := next((each for each in ("containerPort", "port") if each in fields), None)):
        return {name: port}
    return _of_text(value, fields) if isinstance(value, str) and value else None


def _of_text(text: str, fields: Container[str]) -> dict[str, Any] | None:
    """The object that is meant by its name, its path, or two parts: `NAME=VALUE`, `SERVER:PATH`, `VOLUME:PATH`."""
    first, _, rest = (part.strip() for part in _PARTS.split(f"{text}:", maxsplit=1))
    rest, volume = rest.removesuffix(":"), corrected(first, dns_1123_label_problem)
    forms = {
        "mountPath": volume and {"name": volume, "mountPath": rest or f"/{first.lstrip('/')}"},
        "emptyDir": volume and not rest and {"name": volume},
        "containerPort": rest.isdecimal() and {"containerPort": int(rest)},
        "tolerationSeconds": {"key": first, "operator": "Exists"},
        "configMapRef": {"configMapRef": {"name": text}},
        "value": rest and {"name": first, "value": rest},
        "server": rest and {"server": first, "path": rest},
        "sizeLimit": text[0].isdigit() and {"sizeLimit": text},
        **{
            key: {key: text}
            for key in ("name", "claimName", "secretName", "medium", "path")
            if "emptyDir" not in fields
        },
    }
    return next((form for field, form in forms.items() if field in fields and isinstance(form, dict)), None)


def _entries(value: Any) -> dict[str, Any]:
    """The entries that are written as a list, or as text such as `gpu=a100`; empty if it is neither."""
    entries: dict[str, Any] = {}
    for each in value if isinstance(value, list) else [value]:
        written = dict(_PAIR.findall(each)) if isinstance(each, str) and not _PAIR.sub("", each).strip(", ") else each
        if not isinstance(written, dict):
            return {}
        entries |= written
    return entries


def _listed(value: Any, item: Shape) -> list[Any] | None:
    """The list that is meant by one of its items, a command line, or a mapping of names; None if unclear."""
    if isinstance(value, str) and item.type == "string":
        return shell.word_list(value) if value.strip() else None
    if not isinstance(value, dict):
        inner = _mapped(value, item)
        return [inner] if inner and inner.keys() >= {*item.required} else None
    if len(value.keys() & item.fields.keys()) * 2 >= max(len(value), 1):  # one item, perhaps with misspelt fields
        return [value]
    items = [
        {"name": name, **(each if isinstance(each, dict) else {"value": _converted(each, "string") or each})}
        for name, each in value.items()
    ]
    return items if items and all(each.keys() <= item.fields.keys() for each in items) else None
