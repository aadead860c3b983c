"""The limits of a LimitRange for one resource: minimum, maximum, and the ratio of limit to request.

https://github.com/kubernetes/kubernetes/blob/v1.35.4/plugin/pkg/admission/limitranger/admission.go (`minConstraint`,
`maxConstraint`, `limitRequestRatioConstraint`)
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from webhook.api import quantity
from webhook.api.quantity import Quantity

_MILLI: Final = quantity.NANO // 1000
# The API server compares larger quantities in whole units (apimachinery `quantity.go`, `MaxMilliValue`).
_MAX_MILLI: Final = (2**63 - 1) // 1000
# Every whole number below this limit is an exact float.
_PRECISE: Final = 2**48


class Bound(Enum):
    MIN = "min"
    MAX = "max"
    RATIO = "maxLimitRequestRatio"


class Fit(NamedTuple):
    request: Quantity
    limit: Quantity


ANY: Final = Fit(Quantity(0), Quantity(0))
"""The result of `fitting` if the bounds do not determine the amounts."""


class Bounds(msgspec.Struct, frozen=True):
    """A field is None if there is no such limit. The ratio is in billionths."""

    min: Quantity | None = None
    max: Quantity | None = None
    ratio: Quantity | None = None

    def broken(self, request: Quantity | None, limit: Quantity | None) -> Iterator[Bound]:
        """The bounds that the amounts break. An amount that is not set is None."""
        if self.min is not None and (request is None or request < self.min or (limit is not None and limit < self.min)):
            yield Bound.MIN
        if self.max is not None and (limit is None or limit > self.max or (request is not None and request > self.max)):
            yield Bound.MAX
        if self.ratio is not None and not self._near(request, limit):
            yield Bound.RATIO

    def __and__(self, other: "Bounds") -> "Bounds":
        return Bounds(
            _of_both(max, self.min, other.min),
            _of_both(min, self.max, other.max),
            _of_both(min, self.ratio, other.ratio),
        )

    def fitting(self, request: Quantity | None, limit: Quantity | None, *, equal: bool = False) -> Fit | None:
        """The request and limit that are nearest to the given amounts and within all bounds; None if no amounts fit.

        With `equal`, the request equals the limit: Kubernetes requires this for resources without overcommitment.
        """
        if self.min is not None and self.max is not None and self.min > self.max:
            return None
        target = next((amount for amount in (limit, request, self.max, self.min) if amount is not None), Quantity(0))
        if request is not None:
            target = max(target, request)
        most = self._within(target)
        if self.ratio is not None and not most:
            return ANY if self.max != 0 else None
        if equal or request is None:
            return Fit(most, most)
        least = min(self._within(request), most)
        if not self._near(least, most):
            least = self._raised(most, self.ratio or Quantity(quantity.NANO))
        return Fit(least, most)

    def _within(self, amount: Quantity) -> Quantity:
        if self.max is not None:
            amount = min(amount, self.max)
        return amount if self.min is None else max(amount, self.min)

    def _near(self, request: Quantity | None, limit: Quantity | None) -> bool:
        """Whether the ratio is allowed. As in the API server, the ratio is a floating point number."""
        if not request or not limit or self.ratio is None:
            return self.ratio is None
        scale = _MILLI
        if max(quantity.whole(request), quantity.whole(limit), quantity.whole(self.ratio)) > _MAX_MILLI:
            scale = quantity.NANO
        observed = float(-(-limit // scale)) / float(-(-request // scale))
        if quantity.whole(self.ratio) <= _MAX_MILLI:
            return observed * 1000 <= float(-(-self.ratio // _MILLI))
        return observed <= float(quantity.whole(self.ratio))

    def _raised(self, limit: Quantity, ratio: Quantity) -> Quantity:
        """The smallest request with an allowed ratio. It is rounded up to whole units if `limit` exceeds 1000, and to
        thousandths otherwise.
        """
        unit = quantity.NANO if limit > 1000 * quantity.NANO else _MILLI
        request = -(-limit * quantity.NANO // (ratio * unit)) * unit
        while request < limit and not self._near(Quantity(request), limit):
            # Rounding can leave the request one unit too low.
            request += max(unit, -(-request // (_PRECISE * unit)) * unit)
        return Quantity(min(request, limit))


def _of_both(
    choose: Callable[[Quantity, Quantity], Quantity], first: Quantity | None, second: Quantity | None
) -> Quantity | None:
    if first is None or second is None:
        return second if first is None else first
    return choose(first, second)
