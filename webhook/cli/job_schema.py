"""A job in a file against the schema of MPIJobs, as the API server applies it before any rule.

It rejects unknown fields for kubectl (`--validate=strict`, the default); for other clients it drops them and sends a
warning. A value of a wrong type is rejected for all.
"""

import json
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from math import ceil, isfinite
from typing import Any, Final, NamedTuple

from webhook.api import duration
from webhook.api.crd_schema import ANY, EXAMPLES, TYPES, CrdSchema, Shape, such_as
from webhook.api.mpijob import meant_role
from webhook.api.names import choose, closest_name
from webhook.api.quantity import IN_WORDS
from webhook.cli.limits import MAX_SCHEMA_FAULTS
from webhook.cli.policy import job_fields
from webhook.rules import CauseReason, Violation, shortened

_KINDS: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


_BOOLEANS: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
_WHOLE: Final = re.compile(r"\s*(-?[0-9]{1,9})(?:\.0)?(?:\s+[A-Za-z]+|[A-Za-z]{3,}|x)?\s*")
_OTHER_NAMES: Final = {"cmd": "command", "entrypoint": "command", "environment": "env", "pvc": "persistentVolumeClaim"}
_ENDING: Final = len("ReplicaSpecs")
_TEXTS: Final = Shape("object", values=Shape("string"))
_OF_METADATA: Final = {"annotations", "labels"}
_SHELL: Final = re.compile(r"[|&;<>$`\n*]")


class _Around(NamedTuple):
    """An object that is being read, the outermost first."""

    value: Mapping[str, Any]
    shape: Shape
    path: str


class SchemaVerdict:
    """The fields that the API server would reject in a job, nulls included, and the fixed job for the rules."""

    def __init__(self, document: Mapping[str, Any], schema: CrdSchema) -> None:
        self.violations: list[Violation] = []
        self.unread: list[str] = []
        """The place of a value whose type cannot be converted; rules do not see it."""
        self.written: dict[str, str] = {}
        """The places of fields before they got their right name or place; outer ones come first."""
        self._unknown = f"is not a field of an MPIJob ({schema.origin}): kubectl rejects it, other clients drop it"
        self._around: list[_Around] = []
        self._moved: dict[str, Any] = {}
        self._missing: list[str] = []
        self.mended = self._object(dict(document), schema.root, "")
        for path, value in reversed(self._moved.items()):
            inner = {f"{path}[{key}]": each for key, each in value.items()} if isinstance(value, dict) else {}
            for where, each in (inner or {path: value}).items():
                job_fields.put(self.mended, where, each)
        for where in self._missing:
            if not any(path.startswith(where) for path in self._moved):
                self._report(where, "is missing", such_as(where), CauseReason.REQUIRED)

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
                    self.written[right] = where
                if each is not None:
                    read[role] = self._value(each, inner, where)
                self._moved = {place.replace(where, right): moved for place, moved in self._moved.items()}
            return read
        mended: dict[str, Any] = {}
        self._around.append(_Around(value, shape, path))
        for key, each in value.items():
            where = f"{path}[{key}]" if "." in key else _joined(path, key)
            name = key if key in shape.fields else self._meant_field(key, value, shape)
            if name is not None:
                if name != key:
                    self._report(where, self._unknown, f"Rename it to {name}.")
                    self.written[_joined(path, name)] = where
                if each is not None:
                    mended[name] = self._value(each, shape.fields[name], where)
            elif each is not None and (home := self._home(key, each)):
                there, field = home
                self._report(where, self._unknown, f"Move it to {there}.")
                self.written[there] = where
                self._moved[there] = self._value(each, field, there)
            else:
                self._report(where, self._unknown, "Remove it.")
        for name in shape.required:
            field = shape.fields.get(name, shape)
            if name not in mended and field.default is None:
                self._missing.append(_joined(path, name))
                mended[name] = EXAMPLES.get(name) if field.type == "string" else None
        self._around.pop()
        return {key: each for key, each in mended.items() if each is not None}

    def _meant_field(self, key: str, value: dict[str, Any], shape: Shape) -> str | None:
        """The field that a misspelt `key` of the object stands for, if that one is free and can have the value.

        `name` of a claim is claimName, and pytorchReplicaSpecs are those of MPI.
        """
        if len(self.violations) >= MAX_SCHEMA_FAULTS:
            return None
        given, lower, path = value[key], key.lower(), self._around[-1].path
        free = [name for name in shape.fields if name not in value and _joined(path, name) not in self._moved]
        fitting = {name: shape.fields[name].type for name in free if _takes(shape.fields[name], given)}
        if (other := _OTHER_NAMES.get(lower, f"{key}s")) in fitting:
            return other
        # Anything can be written alone that should be in a list or mapping, so a name that is just similar says little.
        near = [name for name, kind in fitting.items() if kind not in {"array", "object"} or _is(given, kind)]
        longer = (name for name in fitting if name.lower().endswith(lower[-_ENDING:]))
        return closest_name(key, near) or next(longer, None)

    def _home(self, key: str, value: Any) -> tuple[str, Shape] | None:
        """The place in the job where the field belongs: around its object, or a level below that."""
        for around in reversed(self._around):
            if key in _OF_METADATA and (metadata := _metadata(around)):
                return _joined(metadata, key), _TEXTS
            places = _places(key, value, around)
            if len(places) == 1 and (where := _joined(around.path, places[0][0])) not in self._moved:
                return where, places[0][1]
        return None

    def _value(self, value: Any, shape: Shape, path: str) -> Any:
        if shape.type == ANY:
            return value
        if not _is(value, shape.type):
            return self._of_wrong_type(value, shape, path)
        names = shape.fields.keys()
        if isinstance(value, dict) and names >= {"name", "value"} and not value.keys() & names:
            value = (_listed(value, shape) or [value])[0]
            self._report(path, "has no name", f"Write {_shown(value)}.")
        if isinstance(value, dict):
            return self._object(value, shape, path) if shape.fields or shape.values is not None else value
        if isinstance(value, list) and shape.items is not None:
            inner = shape.items
            read = (self._value(each, inner, f"{path}[{index}]") for index, each in enumerate(value))
            found = [each for each in read if each is not None]
            self._duplicates(found, shape, path)
            return found
        if shape.choices and value not in shape.choices:
            fix = choose(str(value), shape.choices)
            self._report(path, f'"{shortened(str(value))}" is not supported', fix, CauseReason.NOT_SUPPORTED)
            return next((choice for choice in shape.choices if fix == f"Write {choice}."), value)
        return value

    def _of_wrong_type(self, value: Any, shape: Shape, path: str) -> Any:
        wanted, shown = _words(shape.type), _shown(value)
        given = shown if isinstance(value, int | float) else _words(_KINDS.get(type(value), "empty"))
        meant = _meant(value, shape)
        if meant is None:
            example = EXAMPLES.get(path.rpartition(".")[2])
            fix = f"Write {wanted}{f', such as {example},' if example else ''} in place of {shown}."
            self.unread.append(path)
        elif shape.type == "quantity" and 0 < value < 1000:
            meant, fix = _fraction(value, path)
        elif len(json.dumps(meant)) > 300 and (meant == [value] or isinstance(value, list)):
            fix = 'Put "- " before its first field.' if meant == [value] else "Remove the dashes before its fields."
        else:
            fix = f"Write {_shown(meant)}{' in quotes' if isinstance(value, float) and isinstance(meant, str) else ''}."
        if meant == [value]:
            self.written[f"{path}[0]"] = path
        self._report(path, f"must be {wanted}, not {given}", fix)
        return None if meant is None else self._value(meant, shape, path)

    def _duplicates(self, items: list[Any], shape: Shape, path: str) -> None:
        seen: set[tuple[str, ...]] = set()
        for index, item in enumerate(items if shape.keys else ()):
            if not isinstance(item, dict) or shape.items is None:
                continue
            defaults = {key: shape.items.fields[key].default for key in shape.keys if key in shape.items.fields}
            identity = tuple(json.dumps(item.get(key, defaults.get(key))) for key in shape.keys)
            if identity in seen:
                # Where a rule puts it too.
                fault = f"{shortened(', '.join(identity), 40)} is there twice"
                self._report(f"{path}[{index}].{shape.keys[0]}", fault, "Change one of the two, or leave it out.")
            seen.add(identity)

    def _report(self, path: str, fault: str, fix: str, reason: CauseReason = CauseReason.INVALID) -> None:
        if len(self.violations) < MAX_SCHEMA_FAULTS:
            self.violations.append(Violation(shortened(path, 300), fault, fix, reason))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}".lstrip(".")


def _metadata(around: _Around) -> str | None:
    """The path of an object's labels and annotations, or of those of its pods."""
    places = ("metadata", "template.metadata")
    return next((_joined(around.path, at) for at in places if at.split(".")[0] in around.shape.fields), None)


def _places(key: str, value: Any, around: _Around) -> list[tuple[str, Shape]]:
    """The free places for a field of this name in an object or its fields, and its type there."""
    if own := around.shape.fields.get(key):
        return [(key, own)] if key not in around.value and _takes(own, value) else []
    places: list[tuple[str, Shape]] = []
    for name, field in around.shape.fields.items() if "[" not in key and "]" not in key else ():
        path, inner, present = name, field, around.value.get(name)
        if isinstance(present, list) and len(present) == 1 and field.items is not None:
            path, inner, present = f"{name}[0]", field.items, present[0]
        if present is not None and (not isinstance(present, dict) or key in present):
            continue
        if name == "resources" and "containers" in around.shape.fields:
            continue  # those of a pod, where a container's are meant
        if inner.values is not None and _is_entry(key, value, name, inner.values, around.shape):
            places.append((f"{path}[{key}]" if "." in key or inner.values.fields else f"{path}.{key}", inner.values))
        elif key in inner.fields and _takes(inner.fields[key], value):
            places.append((f"{path}.{key}", inner.fields[key]))
    return places


def _is_entry(key: str, value: Any, name: str, shape: Shape, around: Shape) -> bool:
    """Whether a mapping with any keys is to have this one: known are those of roles and the amounts of resources."""
    if shape.fields:
        return meant_role(key) is not None and isinstance(value, dict)
    meant = "requests" if key == "storage" else "limits"
    return name == meant and {"limits", "requests"} <= around.fields.keys() and _is(value, shape.type)


def _is(value: Any, kind: str) -> bool:
    """Whether a value is of the type; of one that is not known here everything is."""
    return kind not in TYPES or (isinstance(value, TYPES[kind][0]) and isinstance(value, bool) == (kind == "boolean"))


def _words(kind: str) -> str:
    return TYPES[kind][1] if kind in TYPES else kind


def _takes(shape: Shape, value: Any) -> bool:
    """Whether the field may have the value, or what was meant by it."""
    return value is None or shape.type == ANY or _is(value, shape.type) or _meant(value, shape) is not None


def _meant(value: Any, shape: Shape) -> Any:
    """The value probably meant by a value of the wrong type; None if that is not certain."""
    if shape.type == "array" and shape.items is not None:
        return _listed(value, shape.items)
    return _mapped(value, shape) if shape.type == "object" else _converted(value, shape.type)


def _fraction(value: float, path: str) -> tuple[int | str, str]:
    """The quantity that was meant by a number such as 0.5, and what to write."""
    if path.endswith(("[cpu]", ".cpu")):
        return str(value), f'Write "{value}" in quotes, or {round(value * 1000)}m.'
    if "/" in path:  # a device
        return ceil(value), f"Write {ceil(value)}."
    return f"{round(value * 1024)}Mi", f"Write {round(value * 1024)}Mi, or {round(value * 1000)}M."


def _converted(value: Any, kind: str) -> Any:
    if kind in {"string", "quantity"} and isinstance(value, int | float):
        return json.dumps(value)
    if kind == "boolean" and isinstance(value, str | int):
        return _BOOLEANS.get(str(value).strip().lower())
    if kind in {"integer", "number"} and isinstance(value, str):
        with suppress(duration.DurationError):  # every amount of time in a job is in seconds
            return duration.parse(duration.meant(value) or "")
        number = _WHOLE.fullmatch(value)
        digits = number[1] if number else IN_WORDS.get(value.strip().lower())
        return int(digits) if digits else None
    if kind == "integer" and isinstance(value, float) and isfinite(value):
        return round(value)
    return None


def _words_of(command: str) -> list[str] | None:
    """A command line as the list that a container takes; what needs a shell gets one."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if words[3:] and words[1].startswith("-") and words[1].endswith("c"):  # a script without quotes
        return [*words[:2], command.split(None, 2)[2]]
    needs_shell = _SHELL.search(command) and not (words[1:2] and words[1].startswith("-") and "c" in words[1])
    return ["/bin/sh", "-c", command] if needs_shell or not words else words


def _shown(value: Any) -> str:
    """As written in YAML and JSON."""
    return shortened(json.dumps(value, ensure_ascii=False), 300)


def _mapped(value: Any, shape: Shape) -> dict[str, Any] | None:
    """The object whose name, port or variable is written alone, or whose entries are written as a list."""
    fields = shape.fields
    if isinstance(value, list) and "add" in fields:  # capabilities
        return {"add": value}
    if isinstance(value, list) and shape.values is not None and all(isinstance(each, dict) for each in value):
        kind = shape.values.type
        return {key: _converted(each, kind) or each for entry in value for key, each in entry.items()} or None
    port = value if _is(value, "integer") else _converted(value, "integer")
    if port is not None and (name := next((each for each in ("containerPort", "port") if each in fields), None)):
        return {name: port}
    keys = [key for key in ("name", "claimName", "secretName") if key in fields]
    if not isinstance(value, str) or not value or not keys:
        return None
    name, equals, text = value.partition("=")
    return {"name": name, "value": text} if equals and "value" in fields else {keys[0]: value}


def _listed(value: Any, item: Shape) -> list[Any] | None:
    """The list of such items that is written as one of them, as a command line, or by their names."""
    if isinstance(value, str) and item.type == "string":
        return _words_of(value) if value.strip() else None
    if not isinstance(value, dict):
        inner = None if len(item.required) > 1 else _mapped(value, item)
        return [inner] if inner else None
    if len(value.keys() & item.fields.keys()) * 2 >= max(len(value), 1):  # one of them, perhaps with misspelt fields
        return [value]
    found = [
        {"name": name, **(each if isinstance(each, dict) else {"value": _converted(each, "string") or each})}
        for name, each in value.items()
    ]
    return found if found and all(each.keys() <= item.fields.keys() for each in found) else None
