"""Predicts if a ClusterQueue could admit a job's pod sets while nothing else uses quota.

Kueue gives each pod set one flavor for all resources of a resource group: the first flavor that fits. Kueue never
revises a choice (kueue `pkg/scheduler/flavorassigner/flavorassigner.go`, `assignFlavors`). If no combination of flavors
has enough quota, Kueue never admits the job. If a combination has enough, Kueue may still not find it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import Final

import msgspec

from webhook.api.kueue import FlavorResource, Group, Quota, plus
from webhook.cluster.resources.cluster_queues import ClusterQueue
from webhook.cluster.resources.kueue_config import KueueConfig
from webhook.cluster.resources.resource_flavors import RESOURCE_FLAVORS, ResourceFlavor
from webhook.cluster.view import Answer, ClusterView
from webhook.predict.kueue.cohorts import within_reach
from webhook.predict.kueue.flavors import Mismatch, mismatch, topology_mismatch
from webhook.predict.kueue.pod_sets import PodSet

_PODS: Final = "pods"
_NOTHING: Final = Quota()


class Token(StrEnum):
    """The reasons in Kueue's status (kueue `apis/kueue/v1beta2/workload_types.go`)."""

    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"


class FlavorShortage(msgspec.Struct, frozen=True):
    """A request that exceeds the maximum amount of a flavor; `before` is the amount that earlier pod sets use."""

    pair: FlavorResource
    before: int
    requested: int
    capacity: int


class Obstacle(msgspec.Struct, frozen=True):
    """Why a pod set can never be admitted."""

    pod_set: PodSet
    unavailable: str | None = None
    """A requested resource without quota."""
    mismatches: tuple[Mismatch, ...] = ()
    shortages: tuple[FlavorShortage, ...] = ()
    several_topologies: tuple[str, ...] = ()
    """Flavors of several topologies, if the pods would need all of them."""
    of_topologies: tuple[str, ...] = ()
    """The resources of the flavors with a topology, if the pods request none of them."""

    @property
    def token(self) -> Token:
        return Token.EXCEEDS_MAX_QUOTA if self.shortages else Token.NO_MATCHING_FLAVOR


class _Unit(msgspec.Struct, frozen=True):
    """Pod sets that get the same flavors."""

    pod_sets: tuple[PodSet, ...]
    total: Mapping[str, int]

    @classmethod
    def of(cls, pod_sets: Iterable[PodSet], *, count_pods: bool) -> "_Unit":
        members = tuple(pod_sets)
        total: dict[str, int] = {}
        for pods in members:
            for name, value in {**pods.total, **({_PODS: pods.count} if count_pods else {})}.items():
                total[name] = plus(total.get(name, 0), value)
        return cls(members, total)

    @property
    def last(self) -> PodSet:
        return self.pod_sets[-1]


def obstacles(
    view: ClusterView, queue: ClusterQueue, pod_sets: Sequence[PodSet], config: KueueConfig
) -> Iterator[Obstacle]:
    """Why the ClusterQueue can never admit the pod sets; empty if they may fit, or if that is unknown."""
    covered = {name for group in queue.groups for name in group.covered}
    units = [_Unit.of(members, count_pods=_PODS in covered) for members in _units(pod_sets)]
    flavors: dict[str, ResourceFlavor | Answer] = {}
    for name in (name for group in queue.groups for name in group.flavors):
        flavor = view.get(RESOURCE_FLAVORS, name)
        flavors[name] = flavor
    # A flavor that is unknown or missing may have a topology.
    only_topologies = all(not isinstance(flavor, ResourceFlavor) or flavor.topology for flavor in flavors.values())
    search = _Search(view, queue, config, flavors, only_topologies)
    for unit in units:
        for name, value in unit.total.items():
            if value and name not in covered and not config.ignores_undeclared:
                pod_set = next(pods for pods in unit.pod_sets if pods.requests.get(name))
                yield Obstacle(pod_set, unavailable=name)
        yield from search.topologies(unit)
    for group in queue.groups:
        yield from search.group(group, [unit for unit in units if unit.total.keys() & group.covered])


def _units(pod_sets: Sequence[PodSet]) -> Iterable[Sequence[PodSet]]:
    together: dict[str, list[PodSet]] = {}
    for index, pods in enumerate(pod_sets):
        together.setdefault(pods.topology.group or str(index), []).append(pods)
    return together.values()


@dataclass(frozen=True, slots=True)
class _Search:
    view: ClusterView
    queue: ClusterQueue
    config: KueueConfig
    flavors: Mapping[str, ResourceFlavor | Answer]
    only_topologies: bool
    reach: dict[FlavorResource, int] = field(default_factory=dict)

    def group(self, group: Group, units: Sequence[_Unit]) -> Iterator[Obstacle]:
        if not group.flavors:
            return  # a ClusterQueue from a file need not comply with Kueue's schema, which requires a flavor
        choices: list[list[str]] = []
        for unit in units:
            requests = {name: value for name, value in unit.total.items() if name in group.covered}
            mismatches: list[Mismatch] = []
            shortages: list[FlavorShortage] = []
            fitting = []
            for flavor in group.flavors:
                shortage = self._shortage(flavor, requests, {})
                if wrong := self._mismatch(unit, flavor, group):
                    mismatches.append(wrong._replace(fix="") if shortage else wrong)
                elif shortage:
                    shortages.append(shortage)
                else:
                    fitting.append(flavor)
            if not fitting:
                yield Obstacle(unit.last, mismatches=tuple(mismatches), shortages=tuple(shortages))
            choices.append(fitting)
        if not all(choices):
            return
        preferred: Obstacle | None = None
        for choice in product(*choices):
            short = self._together(group, units, choice)
            if short is None:
                return
            preferred = preferred or short
        if preferred is not None:
            yield preferred

    def topologies(self, unit: _Unit) -> Iterator[Obstacle]:
        """The obstacles of topologies: a pod set must request resources of exactly one group with topologies.

        kueue `pkg/scheduler/flavorassigner/tas_flavorassigner.go` (`onlyTASFlavor`).
        """
        if self.config.topology_aware is not True:
            return
        aware = [group for group in self.queue.groups if self._has_topology(group)]
        covered = sorted({name for group in aware for name in group.covered if not self.config.leaves_out(name)})
        for pod_set in unit.pod_sets:
            if not (pod_set.topology.explicit or self.only_topologies):
                continue
            names = [group.flavors[0] for group in aware if pod_set.requests.keys() & group.covered]
            if len(names) > 1:
                yield Obstacle(pod_set, several_topologies=tuple(names))
            certain = pod_set.certain and (pod_set.topology.explicit or len(aware) == len(self.queue.groups))
            if certain and not pod_set.requests and covered and _PODS not in covered:
                yield Obstacle(pod_set, of_topologies=tuple(covered))

    def _has_topology(self, group: Group) -> bool:
        flavors = [self.flavors[name] for name in group.flavors]
        return bool(flavors) and all(isinstance(flavor, ResourceFlavor) and flavor.topology for flavor in flavors)

    def _together(self, group: Group, units: Sequence[_Unit], choice: Sequence[str]) -> Obstacle | None:
        """The first unit that does not fit into the quota that earlier units leave; None if all units fit together."""
        used: dict[FlavorResource, int] = {}
        for unit, flavor in zip(units, choice, strict=True):
            requests = {name: value for name, value in unit.total.items() if name in group.covered}
            if short := self._shortage(flavor, requests, used):
                return Obstacle(unit.last, shortages=(short,))
            for name, value in requests.items():
                pair = FlavorResource(flavor, name)
                used[pair] = plus(used.get(pair, 0), value)
        return None

    def _shortage(
        self, flavor: str, requests: Mapping[str, int], used: Mapping[FlavorResource, int]
    ) -> FlavorShortage | None:
        for name, value in requests.items():
            pair = FlavorResource(flavor, name)
            before = used.get(pair, 0)
            total = plus(before, value)
            # The cohort matters only above the queue's nominal quota, which is always available.
            if total > self.queue.quotas.get(pair, _NOTHING).nominal:
                if pair not in self.reach:
                    self.reach[pair] = within_reach(self.view, self.queue, pair)
                capacity = self.reach[pair]
                if total > capacity:
                    return FlavorShortage(pair, before, value, capacity)
        return None

    def _mismatch(self, unit: _Unit, name: str, group: Group) -> Mismatch | None:
        flavor = self.flavors[name]
        if not isinstance(flavor, ResourceFlavor):
            return None
        for pod_set in unit.pod_sets:
            overlaps = bool(pod_set.requests.keys() & group.covered)
            other = mismatch(pod_set.template, flavor)
            wrong = self.config.topology_aware is True and topology_mismatch(
                self.view, pod_set.topology, flavor, only_topologies=self.only_topologies, overlaps=overlaps
            )
            if wrong:
                return wrong._replace(fix="") if other else wrong
            if other:
                return other
        return None
