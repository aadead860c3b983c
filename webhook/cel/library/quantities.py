"""`quantity('1.5Gi')` and its functions.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/cel/library/quantity.go
"""

from typing import Final

from webhook.api import quantity
from webhook.api.quantity import NANO
from webhook.cel.library.declared import BOOL, DOUBLE, INT, STRING, Declared, Function, Method, Text

_LARGEST: Final = 2**63


class Amount(Text):
    """A quantity, stored as a number of billionths."""

    type = "kubernetes.Quantity"

    @property
    def nano(self) -> int:
        return int(self.text)

    @classmethod
    def of(cls, nano: int) -> "Amount":
        return cls(str(nano))


def _parse(text: str) -> Amount:
    return Amount.of(quantity.parse(text))


def _is_quantity(text: str) -> bool:
    return quantity.are_readable([text])


def _is_integer(amount: Amount) -> bool:
    whole, rest = divmod(amount.nano, NANO)
    return rest == 0 and -_LARGEST <= whole < _LARGEST


def _as_integer(amount: Amount) -> int:
    if not _is_integer(amount):
        raise ValueError("cannot convert value to integer")
    return amount.nano // NANO


def _compare(one: Amount, other: Amount) -> int:
    return (one.nano > other.nano) - (one.nano < other.nano)


FUNCTIONS: Final[tuple[Declared, ...]] = (
    Function("quantity", [STRING], Amount, _parse),
    Function("isQuantity", [STRING], BOOL, _is_quantity),
    Method("sign", [Amount], INT, lambda one: _compare(one, Amount.of(0))),
    Method("isInteger", [Amount], BOOL, _is_integer),
    Method("asInteger", [Amount], INT, _as_integer),
    Method("asApproximateFloat", [Amount], DOUBLE, lambda one: one.nano / NANO),
    Method("add", [Amount, Amount], Amount, lambda one, other: Amount.of(one.nano + other.nano)),
    Method("add", [Amount, INT], Amount, lambda one, other: Amount.of(one.nano + other * NANO)),
    Method("sub", [Amount, Amount], Amount, lambda one, other: Amount.of(one.nano - other.nano)),
    Method("sub", [Amount, INT], Amount, lambda one, other: Amount.of(one.nano - other * NANO)),
    Method("compareTo", [Amount, Amount], INT, _compare),
    Method("isLessThan", [Amount, Amount], BOOL, lambda one, other: one.nano < other.nano),
    Method("isGreaterThan", [Amount, Amount], BOOL, lambda one, other: one.nano > other.nano),
)
