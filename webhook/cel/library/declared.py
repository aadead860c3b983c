"""How a function is declared: name, what it takes and gives, and the Python function that it is."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple


class Text:
    """A value of a type of its own, which one text stands for: equal where the texts are."""

    type: ClassVar[str]

    def __init__(self, text: str) -> None:
        self.text = text


def same(one: object, other: object) -> bool:
    """CEL's ==: numbers are equal whatever their types, and true is no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return one == other


BOOL: Final = "bool"
INT: Final = "int"
DOUBLE: Final = "double"
STRING: Final = "string"
DYN: Final = "dyn"
LIST: Final = "list"
"""Of anything: the engine matches a function that takes `dyn` to no value."""
LIST_OF_STRINGS: Final = "list<string>"
LISTS_BY_KEY: Final = "map<string, list<string>>"


Type = str | type[Text]
"""One of CEL's own by its name, or one of ours."""


class Declared(NamedTuple):
    """A function, or one of several of its name."""

    name: str
    parameters: Sequence[Type]
    result: Type
    work: Callable[..., Any]
    method: bool = False


def Function(name: str, parameters: Sequence[Type], result: Type, work: Callable[..., Any]) -> Declared:  # noqa: N802
    """Called as name(a, b)."""
    return Declared(name, parameters, result, work)


def Method(name: str, parameters: Sequence[Type], result: Type, work: Callable[..., Any]) -> Declared:  # noqa: N802
    """Called as a.name(b)."""
    return Declared(name, parameters, result, work, method=True)
