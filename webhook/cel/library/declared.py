"""Declaration of a function: name, parameter types, result type, and the Python function."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple


class Text:
    """A value of a custom type, represented by one text: values are equal if their texts are."""

    type: ClassVar[str]

    def __init__(self, text: str) -> None:
        self.text = text


def same(one: object, other: object) -> bool:
    """CEL's ==: numbers are equal whatever their types, but true is not equal to 1."""
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
"""A list of any type: the engine never matches a parameter of type `dyn` to a value."""
LIST_OF_STRINGS: Final = "list<string>"
LISTS_BY_KEY: Final = "map<string, list<string>>"


Type = str | type[Text]
"""A type of CEL by its name, or a subclass of `Text`."""


class Declared(NamedTuple):
    """A function, or one of several overloads."""

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
