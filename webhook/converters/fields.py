"""Takes fields out of a mapping. The fields that remain at the end are unknown to the converter."""

from collections.abc import Collection, Iterator
from typing import Any, TypeVar

from webhook.converters.report import ConversionError, Report

T = TypeVar("T", dict[str, Any], list[Any], str, int)

_NAMES = {dict: "a mapping", list: "a list", str: "text", int: "a whole number"}


def take(source: dict[str, Any], key: str, kind: type[T], path: str) -> T | None:
    """Removes the value of `key`, and returns the value or None. ConversionError for a wrong type."""
    value = source.pop(key, None)
    if value is None:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ConversionError(f"{path}.{key}", f"is not {_NAMES[kind]}")
    return value


def containers(template: dict[str, Any], path: str) -> list[dict[str, Any]]:
    """ConversionError if the template has no containers."""
    pod = template.get("spec")
    items = pod.get("containers") if isinstance(pod, dict) else None
    if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
        raise ConversionError(f"{path}.spec.containers", "is not a list of containers")
    return items


def keep(source: dict[str, Any], target: dict[str, Any], *keys: str) -> None:
    for key in keys:
        if key in source:
            target[key] = source.pop(key)


def drop_unknown(source: Collection[str], path: str, report: Report) -> None:
    for key in source:
        report.lost(f"{path}.{key}", "MPIJobs have no such field")


def copied(value: Any) -> Any:
    """A copy of JSON values. `deepcopy` takes ten times as long."""
    if isinstance(value, dict):
        return {key: item if isinstance(item, str) else copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if isinstance(item, str) else copied(item) for item in value]
    return value


def maps(source: Any, key: str) -> list[dict[str, Any]]:
    """The mappings in the list `key`. Other items are left out, because the schema rejects them."""
    value = source.get(key) if isinstance(source, dict) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(source: dict[str, Any], key: str) -> list[str]:
    value = source.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def nested(value: Any, path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Every mapping in `value`, with its path. Outer mappings come first."""
    if isinstance(value, dict):
        yield value, path
        for key, inner in value.items():
            yield from nested(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from nested(inner, f"{path}[{number}]")
