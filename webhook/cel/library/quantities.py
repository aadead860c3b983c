"""`quantity('1.5Gi')` and its functions.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/cel/library/quantity.go
"""

from typing import Final

from webhook.api import quantity
from webhook.api.quantity import NANO
from webhook.cel.library.declared import BOOL, DOUBLE, INT, STRING, Declared, Function, Method, Text, parses

_LARGEST: Final = 2**63


class Amount(Text):
    """A quantity; `text` is the number of billionths."""

    type = "kubernetes.Quantity"

    @property
    def nano(self) -> int:
        return int(self.text)

    @classmethod
    def of(cls, nano: int) -> "Amount":
        return cls(str(nano))


def _parse(text: str) -> Amount:
    return Amount.of(quantity.parse(text))


def _is_integer(amount: Amount) -> bool:
    whole, rest = divmod(amount.nano, NANO)
    return rest == 0 and -_LARGEST <= whole < _LARGEST


def _as_integer(amount: Amount) -> int:
    if not _is_integer(amount):
        raise ValueError("cannot convert value to integer")
    return amount.nano // NANO


def _sign(nano: int) -> int:
    return (nano > 0) - (nano < 0)


FUNCTIONS: Final[tuple[Declared, ...]] = (
    Function("quantity", [STRING], Amount, _parse),
    Function("isQuantity", [STRING], BOOL, parses(quantity.parse)),
    Method("sign", [Amount], INT, lambda amount: _sign(amount.nano)),
    Method("isInteger", [Amount], BOOL, _is_integer),
    Method("asInteger", [Amount], INT, _as_integer),
    Method("asApproximateFloat", [Amount], DOUBLE, lambda amount: amount.nano / NANO),
    Method("add", [Amount, Amount], Amount, lambda amount, other: Amount.of(amount.nano + other.nano)),
    Method("add", [Amount, INT], Amount, lambda amount, number: Amount.of(amount.nano + number * NANO)),
    Method("sub", [Amount, Amount], Amount, lambda amount, other: Amount.of(amount.nano - other.nano)),
    Method("sub", [Amount, INT], Amount, lambda amount, number: Amount.of(amount.nano - number * NANO)),
    Method("compareTo", [Amount, Amount], INT, lambda amount, other: _sign(amount.nano - other.nano)),
    Method("isLessThan", [Amount, Amount], BOOL, lambda amount, other: amount.nano < other.nano),
    Method("isGreaterThan", [Amount, Amount], BOOL, lambda amount, other: amount.nano > other.nano),
)
