"""What changed in an object, as YAML that a person reads: the changed lines, and the keys that they stand under."""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from webhook import yaml

Line = tuple[str, str]


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Line]:
    """Lines as (mark, text): `+` and `-` as in a diff, a blank for context, `.` where unchanged lines are left out."""
    lines = list(_diff(yaml.dump(before).splitlines(), yaml.dump(after).splitlines()))
    kept = _with_ancestors(lines)
    for previous, current in pairwise([-1, *kept]):
        if current > previous + 1:
            yield ".", " " * _indent(lines[current][1]) + "..."
        yield lines[current]
    if kept and kept[-1] < len(lines) - 1:
        yield ".", "..."


def _diff(before: list[str], after: list[str]) -> Iterator[Line]:
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from ((" ", line) for line in after[j1:j2])
        else:
            yield from (("-", line) for line in before[i1:i2])
            yield from (("+", line) for line in after[j1:j2])


def _with_ancestors(lines: list[Line]) -> list[int]:
    """Which lines to keep: the changed ones, and for each the closest lines before it that are indented less."""
    kept = set()
    open_indent: dict[int, int] = {}
    for number, (mark, line) in enumerate(lines):
        indent = _indent(line)
        open_indent = {depth: at for depth, at in open_indent.items() if depth < indent}
        if mark != " ":
            kept |= {number, *open_indent.values()}
        open_indent[indent] = number
    return sorted(kept)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
