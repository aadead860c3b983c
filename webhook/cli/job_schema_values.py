"""Guesses what a user means by a value of a wrong type: a number in quotes, or text where a mapping is expected."""

import json
import re
from contextlib import suppress
from math import isfinite
from typing import Any, Final

from webhook.api import duration, shell
from webhook.api.crd_schema import ANY, TYPES, Shape
from webhook.api.names import closest_name, corrected, dns_1123_label_problem
from webhook.api.quantity import IN_WORDS

_BOOLEANS: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
_WHOLE: Final = re.compile(r"\s*(-?[0-9]{1,9})(?:\.0)?(?:\s+[A-Za-z]+|[A-Za-z]{3,}|x)?\s*")
_PAIR: Final = re.compile(r"(?<![^\s,=:])([^\s,=:]++)\s*+[=:]\s*+([^\s,=:]++)")
_SEPARATOR: Final = re.compile(r"\s*[=:]\s*")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PARTS: Final = {
    **dict.fromkeys(("configMap", "configMapRef", "imagePullSecrets", "secretRef"), ("name", "")),
    **dict.fromkeys(("grpc", "httpGet", "tcpSocket"), ("port", "")), "ports": ("containerPort", ""),
    **dict.fromkeys(("containers", "initContainers"), ("name", "image")), "env": ("name", "value"),
    **dict.fromkeys(("configMapKeyRef", "secretKeyRef"), ("name", "key")), "envFrom": ("configMapRef", ""),
    "fieldRef": ("fieldPath", ""), "hostPath": ("path", ""), "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName", ""), "seccompProfile": ("type", ""), "secret": ("secretName", ""),
    "tolerations": ("key", "effect"), "volumeMounts": ("name", "mountPath"),
    "volumes": ("name", "persistentVolumeClaim"),
}  # fmt: skip
"""The fields that are meant by A and B in `A=B`, `A:B` or `{A: B}`. The second field is empty if only A is possible."""


def is_of(value: Any, kind: str) -> bool:
    """Whether a value is of the type `kind`; always True for a type that is not in TYPES."""
    return kind not in TYPES or (isinstance(value, TYPES[kind][0]) and isinstance(value, bool) == (kind == "boolean"))


def accepts(shape: Shape, value: Any, field: str) -> bool:
    """Whether the field accepts the value, or the value after a conversion."""
    return value is None or shape.type == ANY or is_of(value, shape.type) or meant(value, shape, field) is not None


def meant(value: Any, shape: Shape, field: str) -> Any:
    """The value that is meant by a value of the wrong type for `field`, or None if it is unclear."""
    if shape.type == "array" and shape.items is not None:
        return _list(value, shape.items, field)
    if shape.type == "object":
        return _object(value, shape, field)
    if shape.type == "string" and isinstance(value, dict) and value.keys() == {"repository", "tag"}:
        return "{repository}:{tag}".format(**value) if all(is_of(each, "string") for each in value.values()) else None
    return scalar(value, shape.type)


def scalar(value: Any, kind: str) -> Any:
    """The number, boolean or text that is meant, or None."""
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


def pair(name: str, value: Any, item: Shape, field: str) -> dict[str, Any] | None:
    """The item of the list `field` that is meant by `NAME: VALUE`."""
    if isinstance(value, dict):
        return {"name": name, **value} if {"name", *value} <= item.fields.keys() else None
    return _of_parts(name, value, item, field) if _PARTS.get(field, ("", ""))[1] else None


def _of_parts(first: str, second: Any, shape: Shape, field: str) -> dict[str, Any] | None:
    """The object that is meant by one part, or by two; `second` is None for one part."""
    if field == "emptyDir":
        return {"sizeLimit" if first[0].isdigit() else "medium": first}
    if field == "securityContext":
        return {first: True} if first == "privileged" else None
    if field == "tolerations":
        effect = closest_name(str(second).rpartition(":")[2], _EFFECTS)
        toleration = {"key": first, "operator": "Exists"} | ({"effect": effect} if effect else {})
        return None if first.startswith("Exist") else toleration
    if field in {"volumes", "volumeMounts"}:
        first = corrected(first, dns_1123_label_problem) or ""
        second = (f"/{first}" if field == "volumeMounts" else first) if second is None else second
        if not first or (field == "volumes" and "/" in str(second)):
            return None
    right: dict[str, Any] = {}
    for name, part in zip(_PARTS.get(field, ()), (first, second), strict=False):
        if part is not None and (of := shape.fields.get(name)):
            value = int(part) if of.type != "string" and str(part).isdecimal() else part
            right[name] = value if is_of(value, of.type) else meant(value, of, name)
    return right if right and None not in right.values() else None


def _object(value: Any, shape: Shape, field: str) -> dict[str, Any] | None:
    """The object that is meant by its name, its port, `NAME=VALUE`, or a list of its entries."""
    if isinstance(value, list) and field == "capabilities":
        return {"add": value}
    if isinstance(value, list) and "nodeSelectorTerms" in shape.fields:
        return {"nodeSelectorTerms": value}
    entries = _entries(value, field)
    if entries and (shape.values is not None or entries.keys() <= shape.fields.keys()):
        kinds = {key: (shape.values or shape.fields[key]).type for key in entries}
        return {key: scalar(each, kinds[key]) or each for key, each in entries.items()}
    text = str(value).strip() if isinstance(value, str) or is_of(value, "integer") else ""
    if field == "ports":
        text = text.rpartition(":")[2]
    text = text.replace("/", ":", 1) if field.endswith("KeyRef") else text
    first, *rest = _SEPARATOR.split(text.rstrip(":="), maxsplit=1) if _PARTS.get(field, ("", ""))[1] else [text]
    return _of_parts(first, rest[0] if rest else None, shape, field) if first else None


def _entries(value: Any, field: str) -> dict[str, Any]:
    """The entries that are written as a list, or as text such as `gpu=a100`; empty if the value is neither."""
    entries: dict[str, Any] = {}
    for each in value if isinstance(value, list) else [value]:
        written = dict(_PAIR.findall(each)) if isinstance(each, str) and not _PAIR.sub("", each).strip(", ") else each
        if field == "nodeSelector" and isinstance(written, str):
            written = {written: "true"}
        if not isinstance(written, dict):
            return {}
        entries |= written
    return entries


def _list(value: Any, item: Shape, field: str) -> list[Any] | None:
    """The list that is meant by one of its items, a command line, or a mapping from names to items."""
    if isinstance(value, str) and item.type == "string":
        return shell.word_list(value) if value.strip() else None
    if not isinstance(value, dict):
        inner = _object(value, item, field)
        return [inner] if inner and inner.keys() >= {*item.required} else None
    if len(value.keys() & item.fields.keys()) * 2 >= max(len(value), 1):  # one item, perhaps with misspelt fields
        return [value]
    items = [pair(name, each, item, field) for name, each in value.items()]
    return items if None not in items else None
