"""Changes between two values, made to a third one that is like the first."""

from typing import Any, Final

_ABSENT: Final = object()


def merge(target: Any, before: Any, after: Any) -> Any:
    """`target` with what was changed from `before` to `after`; where both changed the same, `after` counts."""
    merged = _merged(target, before, after)
    return None if merged is _ABSENT else merged


def _merged(target: Any, before: Any, after: Any) -> Any:
    if before == after:
        return target
    if target == before:
        return after
    if isinstance(target, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _of_members(target, before, after)
    named = [_by_name(each) for each in (target, before, after)]
    if all(each is not None for each in named):
        return _of_named(*(each or {} for each in named))
    return after


def _of_members(target: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    merged = {
        key: _merged(target.get(key, _ABSENT), before.get(key, _ABSENT), after.get(key, _ABSENT))
        for key in dict.fromkeys((*target, *after))
    }
    return {key: value for key, value in merged.items() if value is not _ABSENT}


def _of_named(target: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> list[Any]:
    """Containers, variables, volumes: each by its name, in the order of `target` unless that was changed."""
    merged = _of_members(target, before, after)
    first = target if [*before] == [*after] else after
    return [merged[name] for name in dict.fromkeys((*first, *merged)) if name in merged]


def _by_name(value: Any) -> dict[str, Any] | None:
    """The items of a list by their names; None for anything else, or where two have the same name."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    names = [item.get("name") for item in value]
    if not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
        return None
    return dict(zip(names, value, strict=True))
