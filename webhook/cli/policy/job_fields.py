"""Fields of a job by their paths, written as messages have them: `spec.mpiReplicaSpecs[Worker].replicas`."""

import re
from typing import Any, Final

_PATH: Final = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[[^\[\]]+\])*")
_KEY: Final = re.compile(r"\[([^\[\]]+)\]|([^.\[\]]+)")


class FieldError(ValueError):
    """The path leads nowhere; the message says where it ends."""


def parse(path: str) -> tuple[str, ...]:
    """The keys of a path: what stands in brackets may hold dots. FieldError for what is no path."""
    if not _PATH.fullmatch(path):
        raise FieldError("is not a path, such as spec.runPolicy.suspend or metadata.labels[team]")
    return tuple(match[1] or match[2] for match in _KEY.finditer(path))


def get(document: Any, path: str) -> Any:
    """The value at `path`, None where there is none."""
    value = document
    for key in parse(path):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list):
            index = _index(value, key)
            value = None if index is None or index >= len(value) else value[index]
        else:
            return None
    return value


def place(document: Any, path: str) -> tuple[str | int, ...]:
    """Where in the document the value at `path` is: the way to it, as far as it goes."""
    found: list[str | int] = []
    try:
        keys = parse(path)
    except FieldError:
        return ()
    value = document
    for key in keys:
        if isinstance(value, dict) and key in value:
            found.append(key)
            value = value[key]
            continue
        index = _index(value, key) if isinstance(value, list) else None
        if index is None or index >= len(value):
            break
        found.append(index)
        value = value[index]
    return tuple(found)


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at `path`, or take it away with None; what is missing on the way is made.

    FieldError where that is not possible.
    """
    *parents, last = parse(path)
    target: Any = document
    for number, key in enumerate(parents):
        following = parents[number + 1] if number + 1 < len(parents) else last
        target = _child(target, key, [] if following == "0" else {})
    if isinstance(target, dict):
        if value is None:
            target.pop(last, None)
        else:
            target[last] = value
        return
    _put_item(target, last, value)


def _child(target: Any, key: str, otherwise: Any) -> Any:
    if isinstance(target, dict):
        if target.get(key) is None:
            target[key] = otherwise
        return target[key]
    index = _index(target, key) if isinstance(target, list) else None
    if index is None or index > len(target):
        raise FieldError(_nowhere(target, key))
    if index == len(target):
        target.append(otherwise)
    return target[index]


def _put_item(target: Any, key: str, value: Any) -> None:
    index = _index(target, key) if isinstance(target, list) else None
    if index is None or index > len(target):
        raise FieldError(_nowhere(target, key))
    if value is None:
        del target[index : index + 1]
    else:
        target[index : index + 1] = [value]


def _index(items: list[Any], key: str) -> int | None:
    """The place of an item: by its number, or by its name."""
    if key.isdecimal():
        return int(key)
    return next((at for at, item in enumerate(items) if isinstance(item, dict) and item.get("name") == key), None)


def _nowhere(target: Any, key: str) -> str:
    if isinstance(target, list):
        names = [str(item["name"]) for item in target if isinstance(item, dict) and "name" in item]
        there = f"its items are called {', '.join(names)}" if names else f"it has {len(target)} items"
        return f"there is no [{key}] in the list: {there}, and [{len(target)}] adds one"
    return f"there is a value before {key}, which has no fields"
