"""Declarations of CEL functions."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple


class Text:
    """A value of a custom CEL type. Values are equal if their texts are equal."""

    type: ClassVar[str]

    def __init__(self, text: str) -> None:
        self.text = text


def same(first: object, second: object) -> bool:
    """CEL's ==. Numbers of different types may be equal, but true is not equal to 1."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(value, second[key]) for key, value in first.items())
    return first == second


def parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def is_valid(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return is_valid


BOOL: Final = "bool"
INT: Final = "int"
DOUBLE: Final = "double"
STRING: Final = "string"
DYN: Final = "dyn"
LIST: Final = "list"
"""A list of any type. The engine matches no value to a parameter of type `dyn`."""
LIST_OF_STRINGS: Final = "list<string>"
LISTS_BY_KEY: Final = "map<string, list<string>>"


Type = str | type[Text]


class Declared(NamedTuple):
    """A function or an overload of one."""

    name: str
    parameters: Sequence[Type]
    result: Type
    work: Callable[..., Any]
    method: bool = False


Function = Declared
"""Called as name(a, b)."""
Method = partial(Declared, method=True)
"""Called as a.name(b)."""
