"""LimitRanges: limits on containers, pods and claims in a namespace, and defaults for containers."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from webhook.api.bounds import Bounds
from webhook.api.pod_resources import Amounts, parse_amounts
from webhook.api.quantity import Quantity
from webhook.cluster.budget import Budget
from webhook.cluster.limits import MAX_LIMIT_RANGE_ENTRIES
from webhook.cluster.resource import Wire, namespaced

CONTAINER = "Container"
POD = "Pod"
CLAIM = "PersistentVolumeClaim"


Sourced = tuple[Bounds, tuple[str, ...]]
"""Limits, and the names of the LimitRanges that set them."""


class LimitRange(msgspec.Struct, frozen=True):
    """A LimitRange, with the API server's defaults."""

    namespace: str
    name: str
    bounds: Mapping[str, Mapping[str, Sourced]]
    """Limits by type of object and by resource."""
    default_limits: Amounts
    default_requests: Amounts


class _Item(msgspec.Struct, rename="camel", omit_defaults=True):
    type: str = ""
    min: dict[str, object] | None = None
    max: dict[str, object] | None = None
    default: dict[str, object] | None = None
    default_request: dict[str, object] | None = None
    max_limit_request_ratio: dict[str, object] | None = None


class _Spec(msgspec.Struct, omit_defaults=True):
    limits: list[_Item] | None = None


class _LimitRange(Wire):
    spec: _Spec | None = None


def _record(decoded: _LimitRange) -> LimitRange:
    # Defaults as in the API server's `SetDefaults_LimitRangeItem`. Each type has at most one item.
    name = decoded.metadata.name
    by_type: dict[str, dict[str, Sourced]] = {}
    default_limits: dict[str, Quantity] = {}
    default_requests: dict[str, Quantity] = {}
    for item in (decoded.spec and decoded.spec.limits) or ():
        minima, maxima = parse_amounts(item.min), parse_amounts(item.max)
        ratios = parse_amounts(item.max_limit_request_ratio)
        by_type[item.type] = {
            resource: (Bounds(minima.get(resource), maxima.get(resource), ratios.get(resource)), (name,))
            for resource in sorted({*minima, *maxima, *ratios})
        }
        if item.type == CONTAINER:
            default_limits = {**maxima, **parse_amounts(item.default)}
            default_requests = {**minima, **default_limits, **parse_amounts(item.default_request)}
    return LimitRange(decoded.metadata.namespace, name, by_type, default_limits, default_requests)


def _entries(limit_range: LimitRange) -> int:
    return len(limit_range.default_requests) + sum(map(len, limit_range.bounds.values()))


_BUDGET: Final[Budget[LimitRange]] = Budget(
    size=_entries, per_record=MAX_LIMIT_RANGE_ENTRIES, per_group=MAX_LIMIT_RANGE_ENTRIES, total=sys.maxsize
)

LIMIT_RANGES = namespaced("limitranges", "LimitRange", "v1", wire=_LimitRange, record=_record, budget=_BUDGET)


class Defaults(NamedTuple):
    """The defaults of containers.

    A resource is disputed if LimitRanges have different defaults for it. The smallest of these defaults is stored.
    """

    requests: Amounts
    limits: Amounts
    disputed_requests: frozenset[str] = frozenset()
    disputed_limits: frozenset[str] = frozenset()


NO_DEFAULTS = Defaults({}, {})


def defaults(ranges: Iterable[LimitRange]) -> Defaults:
    """The defaults of all LimitRanges in a namespace.

    The API server processes LimitRanges in random order, and the first default applies.
    """
    all_ranges = tuple(ranges)
    if len(all_ranges) == 1:
        return Defaults(all_ranges[0].default_requests, all_ranges[0].default_limits)
    requests, disputed_requests = _smallest(limit_range.default_requests for limit_range in all_ranges)
    limits, disputed_limits = _smallest(limit_range.default_limits for limit_range in all_ranges)
    return Defaults(requests, limits, disputed_requests, disputed_limits)


def _smallest(defaults_of_ranges: Iterable[Amounts]) -> tuple[Mapping[str, Quantity], frozenset[str]]:
    smallest: dict[str, Quantity] = {}
    disputed = set()
    for amounts in defaults_of_ranges:
        for name, amount in amounts.items():
            if smallest.setdefault(name, amount) != amount:
                disputed.add(name)
                smallest[name] = min(amount, smallest[name])
    return smallest, frozenset(disputed)


def bounds(ranges: Sequence[LimitRange], kind: str) -> Mapping[str, Sourced]:
    """The combined limits of all LimitRanges for one type of object, by resource."""
    combined: dict[str, Sourced] = {}
    for limit_range in ranges:
        for name, (own, names) in limit_range.bounds.get(kind, {}).items():
            earlier = combined.get(name)
            combined[name] = (own, names) if earlier is None else (earlier[0] & own, (*earlier[1], *names))
    return combined
