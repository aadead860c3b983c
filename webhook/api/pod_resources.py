"""Requests and limits of a pod, added up as in Kubernetes for quotas, limit ranges, scheduling and Kueue.

https://github.com/kubernetes/component-helpers/blob/v0.35.4/resource/helpers.go (`PodRequests`, `PodLimits`) and
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/v1/defaults.go (`SetDefaults_Pod`). The feature gate
PodLevelResources is assumed to be on, the default since 1.34.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from webhook.api import quantity
from webhook.api.pod import Container, PodTemplate, ResourceRequirements
from webhook.api.quantity import Quantity, QuantityError

Amounts = Mapping[str, Quantity]

HUGE_PAGES: Final = "hugepages-"

_MILLI: Final = quantity.NANO // 1000


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """`path` is relative to the pod template."""

    path: str
    name: str = ""
    init: bool = False
    sidecar: bool = False
    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.path, self.name, self.sidecar, _hashable(self.requests), _hashable(self.limits)))


@dataclass(frozen=True, slots=True)
class PodResources:
    """The resources of a pod's containers and init containers, and those that the pod sets as a whole.

    `requests` and `limits` are the pod-level resources. `overhead` is the overhead of the runtime class.
    """

    containers: tuple[ContainerResources, ...] = ()
    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)
    overhead: Amounts = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.containers, _hashable(self.requests), _hashable(self.limits), _hashable(self.overhead)))

    def with_defaults(self, *, requests: Amounts, limits: Amounts) -> "PodResources":
        """The pod with a LimitRange's defaults in each container that does not set the resource."""
        if not (requests or limits):
            return self
        containers = tuple(
            replace(
                container,
                requests={**requests, **container.requests},
                limits={**limits, **container.limits},
            )
            for container in self.containers
        )
        return replace(self, containers=containers)

    def with_overhead(self, overhead: Amounts) -> "PodResources":
        return replace(self, overhead=overhead)


def of_template(template: PodTemplate) -> PodResources:
    """The pod's resources, with the API server's defaults for requests and pod-level resources.

    An invalid quantity is left out, because the rule `upstream-contract` rejects it.
    """
    spec = template.spec
    if spec is None:
        return PodResources()
    containers = (
        *(_container("containers", index, container) for index, container in enumerate(template.containers)),
        *(_container("initContainers", index, container) for index, container in enumerate(template.init_containers)),
    )
    pod = PodResources(containers, overhead=read_amounts(spec.overhead))
    return _with_pod_level(pod, spec.resources) if spec.resources is not None else pod


def requests(pod: PodResources) -> dict[str, Quantity]:
    total = container_requests(pod)
    total.update((name, amount) for name, amount in pod.requests.items() if is_pod_level(name))
    _add(total, pod.overhead)
    return total


def limits(pod: PodResources) -> dict[str, Quantity]:
    """Overhead counts only for a resource that has a limit."""
    total = container_limits(pod)
    total.update((name, amount) for name, amount in pod.limits.items() if is_pod_level(name))
    for name, amount in pod.overhead.items():
        if total.get(name):
            total[name] = Quantity(total[name] + amount)
    return total


def container_requests(pod: PodResources) -> dict[str, Quantity]:
    return at_once(Use(container.requests, container.init, container.sidecar) for container in pod.containers)


def container_limits(pod: PodResources) -> dict[str, Quantity]:
    """A container without a limit adds 0."""
    return at_once(Use(container.limits, container.init, container.sidecar) for container in pod.containers)


def is_sidecar(init_container: Container) -> bool:
    return init_container.restart_policy == "Always"


def is_pod_level(name: str) -> bool:
    return name in {"cpu", "memory"} or name.startswith(HUGE_PAGES)


def is_overcommitted(name: str) -> bool:
    """Whether the limit may exceed the request. For huge pages and extended resources, both must be equal."""
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith(HUGE_PAGES)


def read_amounts(values: Mapping[str, object] | None) -> dict[str, Quantity]:
    """The valid quantities, rounded up to thousandths as in the API server."""
    amounts = {}
    for name, value in (values or {}).items():
        try:
            amounts[name] = _rounded(quantity.parse(value))
        except QuantityError:
            continue
    return amounts


def parse_amounts(values: Mapping[str, object] | None) -> dict[str, Quantity]:
    """Like `read_amounts`, but with a QuantityError for an invalid quantity."""
    return {name: _rounded(quantity.parse(value)) for name, value in (values or {}).items()}


def _rounded(amount: Quantity) -> Quantity:
    return amount if amount % _MILLI == 0 else Quantity(-(-amount // _MILLI) * _MILLI)


def _container(kind: str, index: int, container: Container) -> ContainerResources:
    init = kind == "initContainers"
    resources = container.resources
    most = read_amounts(resources.limits) if resources is not None else {}
    return ContainerResources(
        path=f"spec.{kind}[{index}]",
        name=container.name,
        init=init,
        sidecar=init and is_sidecar(container),
        requests={**most, **read_amounts(resources.requests)} if resources is not None else {},
        limits=most,
    )


def _with_pod_level(pod: PodResources, pod_level: ResourceRequirements) -> PodResources:
    """The pod with its pod-level resources and Kubernetes' defaults for them.

    A missing limit of huge pages defaults to the containers' limit (`defaultHugePagePodLimits`). If the pod has limits,
    a missing request defaults to the containers' request, or to the limit if the containers have no request
    (`defaultPodRequests`).
    """
    least, most = read_amounts(pod_level.requests), read_amounts(pod_level.limits)
    if least or most:
        for name, amount in container_limits(pod).items():
            if name.startswith(HUGE_PAGES):
                most.setdefault(name, amount)
    if most:
        for name, amount in container_requests(pod).items():
            if is_pod_level(name) and not name.startswith(HUGE_PAGES):
                least.setdefault(name, amount)
        for name, amount in most.items():
            if is_pod_level(name):
                least.setdefault(name, amount)
    return PodResources(pod.containers, least, most, pod.overhead)


class Use(NamedTuple):
    amounts: Amounts
    init: bool = False
    sidecar: bool = False


def at_once(uses: Iterable[Use]) -> dict[str, Quantity]:
    """The highest amount of each resource that a pod uses at any moment.

    Init containers run one after the other, before the containers. Sidecars keep running. Containers run in parallel.
    """
    total: dict[str, Quantity] = {}
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for use in uses:
        if not use.init:
            _add(total, use.amounts)
            continue
        at_its_turn = dict(sidecars)
        _add(at_its_turn, use.amounts)
        if use.sidecar:
            _add(total, use.amounts)
            sidecars = at_its_turn
        _raise(peak, at_its_turn)
    _raise(total, peak)
    return total


def _add(total: dict[str, Quantity], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = Quantity(total.get(name, 0) + amount)


def _raise(most: dict[str, Quantity], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if name not in most or amount > most[name]:
            most[name] = amount


def _hashable(amounts: Amounts) -> frozenset[tuple[str, Quantity]]:
    return frozenset(amounts.items())
