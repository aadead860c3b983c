"""Reads and sets fields by paths. Messages have the same paths, such as `spec.mpiReplicaSpecs[Worker].replicas`.

A part of a path is a key, or the index or `name` of a list's item.
"""

import re
from itertools import pairwise
from typing import Any, Final

_PATH: Final = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[[^\[\]]+\])*")
_KEY: Final = re.compile(r"\[([^\[\]]+)\]|([^.\[\]]+)")


class FieldError(ValueError):
    """The path is invalid, or does not exist in the document."""


def parse(path: str) -> tuple[str, ...]:
    """The parts of a path; FieldError for an invalid path. Parts in brackets may contain dots."""
    if not _PATH.fullmatch(path):
        raise FieldError("is not a path, such as spec.runPolicy.suspend or metadata.labels[team]")
    return tuple(match[1] or match[2] for match in _KEY.finditer(path))


def get(document: Any, path: str) -> Any:
    keys, steps = parse(path), place(document, path)
    value = document
    for step in steps:
        value = value[step]
    return value if len(steps) == len(keys) else None


def place(document: Any, path: str) -> tuple[str | int, ...]:
    """The path as keys and indexes, up to the last part that exists; empty for an invalid path."""
    try:
        keys = parse(path)
    except FieldError:
        return ()
    steps: list[str | int] = []
    value = document
    for key in keys:
        index = _index(value, key) if isinstance(value, list) else None
        if isinstance(value, dict) and key in value:
            steps.append(key)
        elif index is not None and index < len(value):
            steps.append(index)
        else:
            break
        value = value[steps[-1]]
    return tuple(steps)


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at `path`, or remove it if `value` is None. Missing parents are created.

    FieldError if a parent has no fields, or if a list does not have the item.
    """
    keys = parse(path)
    target: Any = document
    for key, following in pairwise(keys):
        slot = _slot(target, key)
        parent: Any = [] if following == "0" else {}
        if isinstance(target, list):
            target[slot:] = target[slot:] or [parent]
        elif target.get(slot) is None:
            target[slot] = parent
        target = target[slot]
    slot = _slot(target, keys[-1])
    if isinstance(target, list):
        target[slot : slot + 1] = [] if value is None else [value]
    elif value is None:
        target.pop(slot, None)
    else:
        target[slot] = value


def _slot(target: Any, key: str) -> Any:
    if isinstance(target, dict):
        return key
    if not isinstance(target, list):
        raise FieldError(f"there is a value before {key}, which has no fields")
    index = _index(target, key)
    if index is None or index > len(target):
        names = [str(item["name"]) for item in target if isinstance(item, dict) and "name" in item]
        contents = f"its items are called {', '.join(names)}" if names else f"it has {len(target)} items"
        raise FieldError(f"there is no [{key}] in the list: {contents}, and [{len(target)}] adds one")
    return index


def _index(items: list[Any], key: str) -> int | None:
    if key.isdecimal():
        return int(key)
    return next((at for at, item in enumerate(items) if isinstance(item, dict) and item.get("name") == key), None)
