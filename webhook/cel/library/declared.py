"""How a function is declared: name, what it takes and gives, and the Python function that it is."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from webhook.cel.library.values import Text

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
