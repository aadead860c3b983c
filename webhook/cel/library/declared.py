"""Declarations of CEL functions."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from cel_expr_python import cel


class Amount:
    """CEL's type for a quantity."""

    type: Final = "kubernetes.Quantity"

    def __init__(self, nano: int) -> None:
        self.nano = nano
        """Billionths."""


BOOL: Final = cel.Type.BOOL
INT: Final = cel.Type.INT
DOUBLE: Final = cel.Type.DOUBLE
STRING: Final = cel.Type.STRING
DYN: Final = cel.Type.DYN
LIST: Final = cel.Type.List(DYN)
"""A list with items of any type. The type of a parameter cannot be `dyn` itself: the engine matches no value to it."""
QUANTITY: Final = cel.Type(Amount.type)


class Declared(NamedTuple):
    """A function, or one overload of a function."""

    name: str
    parameters: Sequence[Any]
    result: Any
    work: Callable[..., Any]
    method: bool = False


Function = Declared
"""Called as name(a, b)."""
Method = partial(Declared, method=True)
"""Called as a.name(b)."""
