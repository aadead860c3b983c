"""A job in a file against the schema of MPIJobs, as the API server goes by it before any rule is asked.

kubectl asks it to refuse fields that it does not know (`--validate=strict`, the default); for other clients it takes
them out and sends a warning. A value of a wrong type is refused for all.
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
from webhook.cli.limits import MAX_SCHEMA_FAULTS
from webhook.cli.policy import job_fields
from webhook.rules import CauseReason, Violation, shortened

_KINDS: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


_BOOLEANS: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
_WHOLE: Final = re.compile(r"\s*(-?[0-9]{1,9})(?:\.0)?(?:\s+[A-Za-z]+|[A-Za-z]{3,}|x)?\s*")
_NUMBERS: Final = {"one": 1, "two": 2, "three": 3, "four": 4, "eight": 8}
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
    """What the API server would refuse in a job, nulls included, and the job with all of it fixed, for the rules."""

    def __init__(self, document: Mapping[str, Any], schema: CrdSchema) -> None:
        self.violations: list[Violation] = []
        self.unread: list[str] = []
        """Where a value is of a type from which nothing can be made; for the rules it is not there."""
        self._unknown = f"is not a field of an MPIJob ({schema.origin}): kubectl rejects it, other clients drop it"
        self._around: list[_Around] = []
        self._moved: list[tuple[str, Any]] = []
        self._missing: list[str] = []
        self.mended = self._object(dict(document), schema.root, "")
        for path, value in reversed(self._moved):
            inner = {f"{path}[{key}]": each for key, each in value.items()} if isinstance(value, dict) else {}
            for where, each in (inner or {path: value}).items():
                job_fields.put(self.mended, where, each)
        for where in self._missing:
            if not any(path.startswith(where) for path, _ in self._moved):
                self._report(where, "is missing", such_as(where), CauseReason.REQUIRED)

    def _object(self, value: dict[str, Any], shape: Shape, path: str) -> dict[str, Any]:
        if shape.values is not None:
            inner, read = shape.values, dict[str, Any]()
            for key, each in value.items():
                role = (meant_role(key) if inner.fields else None) or key
                role = key if role in value or role in read else role
                if role != key:
                    fault = f'the operator does not know "{shortened(key)}" and ignores it'
                    self._report(f"{path}[{key}]", fault, f"Rename it to {role}.", CauseReason.NOT_SUPPORTED)
                if each is not None:
                    read[role] = self._value(each, inner, f"{path}[{key}]")
            return read
        mended: dict[str, Any] = {}
        self._around.append(_Around(value, shape, path))
        for key, each in value.items():
            where = f"{path}[{key}]" if "." in key else f"{path}.{key}".lstrip(".")
            name: str | None = key
            if key not in shape.fields:
                name = self._near(key, value, shape)
                home = self._home(key, each) if name is None and each is not None else None
                fix = f"Rename it to {name}." if name else f"Move it to {home[0]}." if home else "Remove it."
                self._report(where, self._unknown, fix)
                if home:  # there it is from now on, for the rules
                    self._moved.append((home[0], self._value(each, home[1], home[0])))
            if name is not None and each is not None:
                mended[name] = self._value(each, shape.fields[name], where)
        for name in shape.required:
            field = shape.fields.get(name, shape)
            if name not in mended and field.default is None:
                self._missing.append(f"{path}.{name}".lstrip("."))
                mended[name] = EXAMPLES.get(name) if field.type == "string" else None
        self._around.pop()
        return {key: each for key, each in mended.items() if each is not None}

    def _home(self, key: str, value: Any) -> tuple[str, Shape] | None:
        """Where else in the job the field belongs, if that is free."""
        for around in reversed(self._around):
            if key in _OF_METADATA and (where := _metadata(around)):
                return f"{where}.{key}".lstrip("."), _TEXTS
            places = _places(key, value, around)
            where = f"{around.path}.{places[0][0]}".lstrip(".") if len(places) == 1 else ""
            if where and all(where != other for other, _ in self._moved):
                return where, places[0][1]
        return None

    def _near(self, key: str, value: dict[str, Any], shape: Shape) -> str | None:
        """The field that was probably meant, as long as there is room to say so."""
        if len(self.violations) >= MAX_SCHEMA_FAULTS:
            return None
        taken = {*value, *(path.removeprefix(f"{self._around[-1].path}.") for path, _ in self._moved)}
        fitting = [name for name, field in shape.fields.items() if name not in taken and _takes(field, value[key])]
        lower = key.lower()
        # `name` of a claim is claimName, pvc is persistentVolumeClaim, and pytorchReplicaSpecs are those of MPI.
        initials = {name: name[:1] + "".join(filter(str.isupper, name)).lower() for name in fitting}
        longer = (name for name in fitting if name.lower().endswith(lower[-_ENDING:]) or initials[name] == lower)
        exact = [name for name in fitting if _takes(shape.fields[name], value[key], alone=False)]
        return closest_name(key, exact) or next(longer, None)

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
        wanted = _words(shape.type)
        shown = _shown(value)
        is_plain = isinstance(value, int | float)
        fault = f"must be {wanted}, not {shown if is_plain else _words(_KINDS.get(type(value), 'empty'))}"
        meant = _meant(value, shape)
        if meant is None:
            name = path.rpartition(".")[2]
            such = f", such as {EXAMPLES[name]}," if name in EXAMPLES else ""
            self._report(path, fault, f"Write {wanted}{such} in place of {shown}.")
            self.unread.append(path)
            return None
        quotes = " in quotes" if isinstance(value, float) and isinstance(meant, str) else ""
        fix = f"Write {_shown(meant)}{quotes}."
        if shape.type == "quantity" and 0 < value < 1000:
            if path.endswith(("[cpu]", ".cpu")):
                fix = f"{fix[:-1]}, or {round(value * 1000)}m."
            elif "/" in path:  # a device
                meant = ceil(value)
                fix = f"Write {meant}."
            else:
                meant = f"{round(value * 1024)}Mi"
                fix = f"Write {meant}, or {round(value * 1000)}M."
        self._report(path, fault, fix)
        return self._value(meant, shape, path)

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


def _metadata(around: _Around) -> str | None:
    """Where the labels and annotations of an object are, or those of the pods that it is about."""
    places = ("metadata", "template.metadata")
    return next((f"{around.path}.{inner}" for inner in places if inner.split(".")[0] in around.shape.fields), None)


def _places(key: str, value: Any, around: _Around) -> list[tuple[str, Shape]]:
    """Where in an object, or in an inner one, a field belongs, as long as that place is free."""
    own = around.shape.fields.get(key)
    if own is not None:
        return [(key, own)] if key not in around.value and _takes(own, value) else []
    found: list[tuple[str, Shape]] = []
    for name, shape in around.shape.fields.items() if "[" not in key and "]" not in key else ():
        way, inner, below = name, shape, around.value.get(name)
        if isinstance(below, list) and len(below) == 1 and inner.items is not None:
            way, inner, below = f"{name}[0]", inner.items, below[0]
        of_pod = name == "resources" and "containers" in around.shape.fields  # where a container's are meant
        if of_pod or (below is not None and (not isinstance(below, dict) or key in below)):
            continue
        if inner.values is not None and _is_entry(key, value, name, inner.values, around.shape):
            found.append((f"{way}[{key}]" if "." in key or inner.values.fields else f"{way}.{key}", inner.values))
        elif key in inner.fields and _takes(inner.fields[key], value):
            found.append((f"{way}.{key}", inner.fields[key]))
    return found


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


def _takes(shape: Shape, value: Any, *, alone: bool = True) -> bool:
    """Whether the field may have the value, or what was meant by it: one that is written `alone` too."""
    if value is None or shape.type == ANY or _is(value, shape.type):
        return True
    return (_meant(value, shape) if alone else _converted(value, shape.type)) is not None


def _meant(value: Any, shape: Shape) -> Any:
    """What was probably meant by a value of a wrong type; None where that is not certain."""
    if shape.type == "array" and shape.items is not None:
        return _listed(value, shape.items)
    return _mapped(value, shape.fields) if shape.type == "object" else _converted(value, shape.type)


def _converted(value: Any, kind: str) -> Any:
    if kind in {"string", "quantity"} and isinstance(value, int | float):
        return json.dumps(value)
    if kind == "boolean" and isinstance(value, str | int):
        return _BOOLEANS.get(str(value).strip().lower())
    if kind in {"integer", "number"} and isinstance(value, str):
        with suppress(duration.DurationError):  # every amount of time in a job is in seconds
            return duration.parse(duration.meant(value) or "")
        number = _WHOLE.fullmatch(value)
        return int(number[1]) if number else _NUMBERS.get(value.strip().lower())
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
    """As it stands in YAML and JSON."""
    return shortened(json.dumps(value, ensure_ascii=False), 300)


def _mapped(value: Any, fields: Mapping[str, Shape]) -> dict[str, Any] | None:
    """The object with these fields whose name, or variable, is written alone."""
    if isinstance(value, list) and "add" in fields:  # capabilities
        return {"add": value}
    keys = [key for key in ("name", "claimName", "secretName") if key in fields]
    if not isinstance(value, str) or not value or not keys:
        return None
    name, equals, text = value.partition("=")
    return {"name": name, "value": text} if equals and "value" in fields else {keys[0]: value}


def _listed(value: Any, item: Shape) -> list[Any] | None:
    """The list of such items that is written as one of them, as a command line, or by their names."""
    if isinstance(value, str) and value.strip():
        inner = None if len(item.required) > 1 else _mapped(value, item.fields)
        return _words_of(value) if item.type == "string" else [inner] if inner else None
    if not isinstance(value, dict) or not value:
        return None
    if value.keys() <= item.fields.keys():
        return [value]
    found = [
        {"name": name, **(each if isinstance(each, dict) else {"value": _converted(each, "string") or each})}
        for name, each in value.items()
    ]
    return found if all(each.keys() <= item.fields.keys() for each in found) else None
