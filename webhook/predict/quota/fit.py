"""Compares the quota use of a job with what is left of its namespace's quotas."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from webhook.api.accelerators import DEVICES_OF_CLASS
from webhook.api.mpijob import WORKER
from webhook.api.pod_resources import Amounts
from webhook.api.quantity import Quantity
from webhook.api.quota_charges import REQUESTS, Charge
from webhook.cluster.resources.resource_quotas import ResourceQuota

Load = tuple[int, Charge]
"""A number of objects, and the quota use of one object."""
Alternatives = list[list[Load]]
"""Several lists of loads. The loads of exactly one list will exist."""


class RolePods(msgspec.Struct, frozen=True):
    """The pods of a role. `count` pods are expected, and `made` pods exist already."""

    role: str
    count: int
    charges: tuple[Charge, ...]
    """The quota use of one pod and its claims."""
    made: int = 0

    def with_amount(self, resource: str, amount: Quantity) -> "RolePods":
        """The same pods with another amount of an extended resource, or of the devices of a class."""
        name = resource if resource.endswith(DEVICES_OF_CLASS) else f"{REQUESTS}{resource}"
        charges = (
            Charge(charge.traits, {**charge.usage, name: amount}) if name in charge.usage else charge
            for charge in self.charges
        )
        return replace(self, charges=tuple(charges))


class Demand(msgspec.Struct, frozen=True):
    """The quota use of a job: its pods, and other objects that do not exist yet."""

    parts: tuple[RolePods, ...] = ()
    objects: tuple[Charge, ...] = ()

    @property
    def whole(self) -> list[Load]:
        return [*((part.count, charge) for part in self.parts for charge in part.charges), *self._objects]

    @property
    def missing(self) -> list[Load]:
        """The loads except those of existing pods. A quota's `used` already includes existing pods."""
        pods = ((max(part.count - part.made, 0), charge) for part in self.parts for charge in part.charges)
        return [*pods, *self._objects]

    @property
    def _objects(self) -> list[Load]:
        return [(1, charge) for charge in self.objects]

    @property
    def workers(self) -> int:
        return next((part.count for part in self.parts if part.role == WORKER), 0)

    def with_workers(self, count: int) -> "Demand":
        parts = tuple(replace(part, count=count) if part.role == WORKER else part for part in self.parts)
        return replace(self, parts=parts)

    def with_amount(self, resource: str, amount: Quantity) -> "Demand":
        """Applies `RolePods.with_amount` to the workers."""
        parts = tuple(part.with_amount(resource, amount) if part.role == WORKER else part for part in self.parts)
        return replace(self, parts=parts)


class Shortage(msgspec.Struct, frozen=True):
    """A resource of which a quota has too little."""

    quota: ResourceQuota
    resource: str
    missing: Quantity
    whole: Quantity
    hard: Quantity
    taken: Quantity
    """The amount that is used or promised to other jobs."""
    usage_known: bool = True
    """False if the quota is new and does not report the use of the resource yet."""

    @property
    def available(self) -> Quantity:
        return Quantity(max(self.hard - self.taken, 0))

    @property
    def impossible(self) -> bool:
        """True if the job alone exceeds the quota and never fits."""
        return self.whole > self.hard


def charged(quota: ResourceQuota, loads: Iterable[Load]) -> dict[str, Quantity]:
    """The loads' use of a quota; zero amounts are left out."""
    total: dict[str, Quantity] = {}
    for count, charge in loads:
        if count and quota.counts(charge.traits):
            for name, amount in charge.usage.items():
                if amount and name in quota.hard:
                    total[name] = Quantity(total.get(name, 0) + count * amount)
    return total


def charged_at_most(quota: ResourceQuota, promised: Iterable[Alternatives]) -> dict[str, Quantity]:
    """The maximum use of a quota, whichever of the alternatives come true."""
    total: dict[str, Quantity] = {}
    for alternatives in promised:
        most: dict[str, Quantity] = {}
        for loads in alternatives:
            for name, amount in charged(quota, loads).items():
                most[name] = max(most.get(name, amount), amount)
        for name, amount in most.items():
            total[name] = Quantity(total.get(name, 0) + amount)
    return total


def shortages(
    quotas: Iterable[ResourceQuota],
    demand: Demand,
    promised: Mapping[str, Amounts] = MappingProxyType({}),
    *,
    before: Demand | None = None,
) -> list[Shortage]:
    """The shortages of the job. `promised` is by quota name.

    `before` is the stored job of an update; only the increase is then checked. If a quota does not report its use of a
    resource, a shortage is certain only if the job alone exceeds the quota.
    """
    result = []
    for quota in quotas:
        missing = charged(quota, demand.missing)
        if not missing:
            continue
        whole = charged(quota, demand.whole)
        earlier = {} if before is None else charged(quota, before.whole)
        others = promised.get(quota.name, {})
        for name, amount in missing.items():
            if name in earlier and whole[name] <= earlier[name]:
                continue
            used = quota.used.get(name)
            taken = Quantity((used or 0) + others.get(name, 0))
            short = Shortage(quota, name, amount, whole[name], quota.hard[name], taken, usage_known=used is not None)
            if short.impossible or (used is not None and taken + amount > short.hard):
                result.append(short)
    return result


def most_workers(workers: int, short: Callable[[int], bool]) -> int:
    """The largest number below `workers` for which `short` returns False; 0 if there is none."""
    return bisect_left(range(1, workers), True, key=short)
