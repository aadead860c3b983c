"""Functions for lists, and for lists as sets.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/cel/library/lists.go; cel-go `ext/lists.go`, `ext/sets.go`
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from webhook.cel.library.declared import BOOL, DYN, INT, LIST, Declared, Function, Method

_KINDS: Final = (bool, (int, float), str, bytes, bytearray)


def _comparable(items: list[Any]) -> list[Any]:
    """The items; ValueError if some cannot be compared with each other."""
    kinds = {next((kind for kind in _KINDS if isinstance(item, kind)), None) for item in items}
    if len(kinds) > 1 or None in kinds:
        raise ValueError("no such overload: the items of the list cannot be compared")
    return items


def _sum(items: list[Any]) -> Any:
    if not items:
        return 0
    if any(isinstance(item, bool) or not isinstance(item, (int, float)) for item in items):
        raise ValueError("no such overload: only numbers can be added")
    if len({type(item) for item in items}) > 1:
        raise ValueError("no such overload: numbers of different types cannot be added")
    total = items[0]
    for item in items[1:]:
        total += item
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise ValueError("integer overflow")
    return total


def _extreme(name: str, choose: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def extreme(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        return choose(_comparable(items))

    return extreme


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError("level must be non-negative")
    return [*_flattened(items, depth)]


def _flattened(items: list[Any], depth: int) -> Iterator[Any]:
    for item in items:
        if isinstance(item, list) and depth > 0:
            yield from _flattened(item, depth - 1)
        else:
            yield item


def _distinct(items: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    for item in items:
        if not _contains(distinct, item):
            distinct.append(item)
    return distinct


def _same(first: object, second: object) -> bool:
    """CEL's ==. Numbers of different types may be equal, but true is not equal to 1."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_same(value, second[key]) for key, value in first.items())
    return first == second


def _contains(items: list[Any], value: Any) -> bool:
    return any(_same(item, value) for item in items)


def _contains_all(items: list[Any], values: list[Any]) -> bool:
    return all(_contains(items, value) for value in values)


def _equivalent(first: list[Any], second: list[Any]) -> bool:
    return _contains_all(first, second) and _contains_all(second, first)


def _intersects(first: list[Any], second: list[Any]) -> bool:
    return any(_contains(second, value) for value in first)


FUNCTIONS: Final[tuple[Declared, ...]] = (
    Method("sum", [LIST], DYN, _sum),
    Method("min", [LIST], DYN, _extreme("min", min)),
    Method("max", [LIST], DYN, _extreme("max", max)),
    Method("sort", [LIST], LIST, lambda items: sorted(_comparable(items))),
    Method("distinct", [LIST], LIST, _distinct),
    Method("flatten", [LIST], LIST, _flatten),
    Method("flatten", [LIST, INT], LIST, _flatten),
    Function("sets.contains", [LIST, LIST], BOOL, _contains_all),
    Function("sets.equivalent", [LIST, LIST], BOOL, _equivalent),
    Function("sets.intersects", [LIST, LIST], BOOL, _intersects),
)
