"""A job with so many bytes in one field, for every list and every mapping that the schema of MPIJobs has."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from tests.support.jobs import changed
from webhook.api.crd_schema import Shape, packaged

Job = dict[str, Any]
Path = tuple[str | int, ...]
Text = Callable[[int], str]
"""The text number so many."""

TEXTS: Mapping[str, Text] = {
    "texts": lambda number: f"x{number}",
    "quantities": str,
    "what is no name and no quantity": lambda number: f"A /{number}",
    "one text": lambda number: "x",
}


def fields() -> Iterator[tuple[Path, Shape]]:
    """Where each list and mapping stands in the job, of the two templates in that of the workers."""
    yield from _below(packaged().root.fields["spec"], ("spec",))
    yield from _below(packaged().root.fields["metadata"], ("metadata",))


def filled(path: Path, shape: Shape, length: int, text: Text) -> Job:
    """The job with some `length` bytes in this field."""
    job = changed()
    parent, below = job, packaged().root
    for token, following in pairwise(path):
        below = _child(below, token)
        parent = _entered(parent, token, below, [] if isinstance(following, int) else {})
    inner = shape.items or shape.values or Shape("any")
    size = len(json.dumps(_item(inner, text, 10_000))) + len(", ") + (0 if shape.items else len(text(10_000)) + 10)
    count = length // size
    many = [_item(inner, text, number) for number in range(count)]
    parent[path[-1]] = many if shape.items else {f"{text(number)}-{number}": value for number, value in enumerate(many)}
    return job


def _below(shape: Shape, path: Path) -> Iterator[tuple[Path, Shape]]:
    if shape.items or shape.values:
        yield path, shape
    for name, field in shape.fields.items():
        yield from _below(field, (*path, name))
    if shape.items:
        yield from _below(shape.items, (*path, 0))
    if shape.values:
        yield from _below(shape.values, (*path, "Worker"))


def _child(shape: Shape, token: str | int) -> Shape:
    if isinstance(token, int):
        return shape.items or Shape("any")
    return shape.fields.get(token) or shape.values or Shape("any")


def _entered(parent: Any, token: Any, shape: Shape, empty: Any) -> Any:
    """What is at `token` of `parent`, made with all that it has to have where it is not there yet."""
    if isinstance(token, int):
        if not parent:
            parent.append(_item(shape, str, 0, scalars=False))
        return parent[0]
    if token not in parent:
        parent[token] = _item(shape, str, 0, scalars=False) if shape.fields else empty
    return parent[token]


def _item(shape: Shape, text: Text, number: int, *, scalars: bool = True) -> Any:
    """A value with all that it has to have, and with every text and number of its own if `scalars`."""
    if shape.fields:
        return {
            name: _item(field, text, number, scalars=scalars)
            for name, field in shape.fields.items()
            if name in shape.required or (scalars and not (field.fields or field.items or field.values))
        }
    if shape.items:
        return [_item(shape.items, text, number)]
    if shape.values:
        return {text(number): _item(shape.values, text, number)}
    return _SCALARS[shape.type](text(number)) if shape.type in _SCALARS else number


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "quantity": str,
    "any": str,
    "boolean": lambda _: True,
}
