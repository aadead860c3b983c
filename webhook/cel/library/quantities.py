"""`quantity('1.5Gi')` and its functions.

https://github.com/kubernetes/apiserver/blob/v0.35.4/pkg/cel/library/quantity.go
"""

from typing import Final

from webhook.api import quantity
from webhook.api.quantity import NANO
from webhook.cel.library.declared import BOOL, DOUBLE, INT, QUANTITY, STRING, Amount, Declared, Function, Method

_LARGEST: Final = 2**63


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True


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
    Function("quantity", [STRING], QUANTITY, lambda text: Amount(quantity.parse(text))),
    Function("isQuantity", [STRING], BOOL, _is_quantity),
    Method("sign", [QUANTITY], INT, lambda amount: _sign(amount.nano)),
    Method("isInteger", [QUANTITY], BOOL, _is_integer),
    Method("asInteger", [QUANTITY], INT, _as_integer),
    Method("asApproximateFloat", [QUANTITY], DOUBLE, lambda amount: amount.nano / NANO),
    Method("add", [QUANTITY, QUANTITY], QUANTITY, lambda amount, other: Amount(amount.nano + other.nano)),
    Method("add", [QUANTITY, INT], QUANTITY, lambda amount, number: Amount(amount.nano + number * NANO)),
    Method("sub", [QUANTITY, QUANTITY], QUANTITY, lambda amount, other: Amount(amount.nano - other.nano)),
    Method("sub", [QUANTITY, INT], QUANTITY, lambda amount, number: Amount(amount.nano - number * NANO)),
    Method("compareTo", [QUANTITY, QUANTITY], INT, lambda amount, other: _sign(amount.nano - other.nano)),
    Method("isLessThan", [QUANTITY, QUANTITY], BOOL, lambda amount, other: amount.nano < other.nano),
    Method("isGreaterThan", [QUANTITY, QUANTITY], BOOL, lambda amount, other: amount.nano > other.nano),
)
