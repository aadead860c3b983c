"""Texts on which a regular expression that goes back and forth takes the square of their length, and more.

They come out of the expression itself: what stands before each of its repeats, then what is repeated, very often, and
an end that fits nothing.
"""

import re
from collections.abc import Iterator
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_TRIED = "a0- \n.[](){}_/'\"\\A:=,;$%"
_REPEATS = frozenset({kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT})
_NOWHERE = ("\0", "\n\0")

Shape = tuple[str, str, str]
"""What stands before, what is repeated, and what stands after."""


def shapes(pattern: re.Pattern[Any]) -> set[Shape]:
    """Texts against this expression."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(source, pattern.flags if isinstance(pattern.pattern, str) else 0)
    whole = _example(tree)
    found = {("", unit) for unit in (*_TRIED, whole)}
    for before, unit in _repeats(tree, ""):
        found |= {(before, unit), ("", before + unit)}
    return {(before, unit, end) for before, unit in found if unit for end in (*_NOWHERE, whole[-1:] + _NOWHERE[0])}


def text_of(shape: Shape, length: int) -> str:
    """One of about this length."""
    before, unit, end = shape
    return before + (unit * (length // len(unit) + 1))[:length] + end


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """(what stands before it, what is repeated), of each repeat, with what comes after it as more of the same."""
    for node in tree:
        kind, argument = node
        if kind in _REPEATS:
            inner = argument[2]
            yield from ((before, unit) for unit in _each(inner))
            yield from _repeats(inner, before)
        elif kind is kinds.SUBPATTERN:
            yield from _repeats(argument[3], before)
        elif kind is kinds.ATOMIC_GROUP:
            yield from _repeats(argument, before)
        elif kind is kinds.BRANCH:
            for branch in argument[1]:
                yield from _repeats(branch, before)
        before += _example_of(node)


def _each(tree: Any) -> Iterator[str]:
    """Examples of what is repeated: every branch, and of a class of characters several."""
    yield _example(tree)
    if len(tree) != 1:
        return
    ((kind, argument),) = tree
    if kind is kinds.SUBPATTERN:
        yield from _each(argument[3])
    elif kind is kinds.BRANCH:
        yield from map(_example, argument[1])
    elif kind is kinds.IN:
        yield from (tried for tried in _TRIED if _is_in(tried, argument))
    elif kind is kinds.ANY:
        yield from _TRIED


def _example(tree: Any) -> str:
    """The shortest text that fits, or nearly: looks around, and back, are left out."""
    return "".join(map(_example_of, tree))


def _example_of(node: Any) -> str:
    kind, argument = node
    if kind in _REPEATS:
        return _example(argument[2]) * int(argument[0])
    if kind is kinds.LITERAL:
        return chr(argument)
    if kind in {kinds.ANY, kinds.NOT_LITERAL}:
        return "b" if argument == ord("a") else "a"
    if kind is kinds.IN:
        return next((tried for tried in map(chr, range(32, 256)) if _is_in(tried, argument)), "\n")
    inner = {kinds.BRANCH: lambda: argument[1][0], kinds.SUBPATTERN: lambda: argument[3]}.get(kind)
    if inner is not None:
        return _example(inner())
    return _example(argument) if kind is kinds.ATOMIC_GROUP else ""


def _is_in(tried: str, members: Any) -> bool:
    categories = {
        kinds.CATEGORY_DIGIT: r"\d",
        kinds.CATEGORY_NOT_DIGIT: r"\D",
        kinds.CATEGORY_SPACE: r"\s",
        kinds.CATEGORY_NOT_SPACE: r"\S",
        kinds.CATEGORY_WORD: r"\w",
        kinds.CATEGORY_NOT_WORD: r"\W",
    }
    found = any(
        (kind is kinds.LITERAL and argument == ord(tried))
        or (kind is kinds.RANGE and argument[0] <= ord(tried) <= argument[1])
        or (kind is kinds.CATEGORY and re.fullmatch(categories[argument], tried) is not None)
        for kind, argument in members
    )
    return found is not any(kind is kinds.NEGATE for kind, _ in members)
