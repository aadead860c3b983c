"""The amounts in a pod template that violate the LimitRanges of its namespace.

https://github.com/kubernetes/kubernetes/blob/v1.35.4/plugin/pkg/admission/limitranger/admission.go
(`PodValidateLimitFunc`, `PersistentVolumeClaimValidateLimitFunc`)
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from webhook.api import pod_resources
from webhook.api.bounds import Bound, Bounds, Fit
from webhook.api.pod import PodTemplate, ResourceRequirements
from webhook.api.pod_resources import ContainerResources, PodResources, is_overcommitted, read_amounts
from webhook.api.quantity import Quantity
from webhook.cluster.resources.limit_ranges import CLAIM, CONTAINER, POD, LimitRange, Sourced, bounds

# Quotas and the scheduler also read huge pages from pod-level resources; LimitRanger does not.
_POD_LEVEL = frozenset({"cpu", "memory"})
_UNBOUND: Sourced = (Bounds(), ())

Amount = Quantity | None
Written = ResourceRequirements


class RequestAndLimit(msgspec.Struct, frozen=True):
    """The amounts of one resource in a container, a pod or a claim."""

    path: str
    """The path of `limits` and `requests`, below the template."""
    name: str
    request: Amount
    limit: Amount
    own_request: bool = True
    """False if the request comes from a default or from the limit."""
    own_limit: bool = True
    """False if the limit is missing or comes from a default."""
    several: bool = False
    """True if `request` and `limit` are sums over several containers."""

    def fitting(self, allowed: Bounds) -> Fit | None:
        """Amounts within `allowed` that the user could set instead; None if there are none."""
        request = self.request if self.own_request else None
        limit = self.request if self.limit is None else self.limit
        return allowed.fitting(request, limit, equal=not is_overcommitted(self.name))


class OutOfBounds(msgspec.Struct, frozen=True):
    """Amounts that break a bound of a LimitRange."""

    kind: str
    amounts: RequestAndLimit
    bound: Bound
    bounds: Bounds
    fit: Fit | None
    """Amounts that the user could set instead; None if no amounts satisfy all bounds."""
    sources: tuple[str, ...]
    """The names of the LimitRanges with the broken bound."""


class NoLimit(msgspec.Struct, frozen=True):
    """The API server rejects a container for which the user set no limit.

    There is no default limit, or it is below the request, or it differs from a request that it must equal.
    """

    amounts: RequestAndLimit
    fit: Fit | None


class AbovePod(msgspec.Struct, frozen=True):
    """After defaults are applied, containers have more of a resource than the pod's own `resources` allow."""

    path: str
    """The path of the amount to change, below the template."""
    amount: Quantity
    """The sum of the containers' requests, or the limit of one container."""
    most: Quantity
    """The amount in the pod's own `resources`."""
    requested: bool
    """True if `amount` and `most` are requests, False if they are limits."""


class HugePagesAlone(msgspec.Struct, frozen=True):
    """A container gets huge pages by default, but neither CPU nor memory. The API server requires one of the two."""

    path: str
    name: str
    amount: Quantity


Fault = OutOfBounds | NoLimit | AbovePod | HugePagesAlone


def faults(
    template: PodTemplate, resources: PodResources, disputed: frozenset[str], ranges: Sequence[LimitRange]
) -> Iterator[Fault]:
    """The faults of containers, pods and claims.

    `resources` are the amounts after defaults are applied. LimitRanges set different defaults for the resources in
    `disputed`, so these are not checked.
    """
    of_containers, of_pods, of_claims = (bounds(ranges, kind) for kind in (CONTAINER, POD, CLAIM))
    written = [container.resources or Written() for container in (*template.containers, *template.init_containers)]
    alone = len(written) == 1
    without_limit = set()
    for container, wrote in zip(resources.containers, written, strict=True):
        yield from _huge_pages_alone(container, wrote)
        left_to_defaults = container.requests.keys() - (wrote.limits or {}).keys()
        for name in sorted((left_to_defaults | of_containers.keys()) - disputed):
            amounts = _of_container(container, wrote, name)
            own, sources = of_containers.get(name, _UNBOUND)
            both = own & of_pods[name][0] if alone and name in of_pods else own
            if _without_limit(amounts):
                without_limit.add(name)
                yield NoLimit(amounts, replace(amounts, limit=None).fitting(both))
            else:
                yield from _broken(CONTAINER, amounts, own, both, sources)
    if template.spec and template.spec.resources:
        yield from _above_pod(template, resources, written, disputed)
    if of_pods:
        requests, limits = pod_resources.container_requests(resources), pod_resources.container_limits(resources)
        for name in of_pods.keys() - disputed:
            own, sources = of_pods[name]
            both = own
            if name in _POD_LEVEL and (name in resources.requests or name in resources.limits):
                request = resources.requests.get(name, requests.get(name))
                limit = resources.limits.get(name, limits.get(name))
                amounts = RequestAndLimit("spec.resources", name, request, limit, own_request=request != limit)
            elif alone and name in without_limit:
                continue  # the fix for the container is within these bounds too
            elif alone:
                amounts = _of_container(resources.containers[0], written[0], name)
                both = own & of_containers.get(name, _UNBOUND)[0]
            else:
                amounts = RequestAndLimit("spec.containers", name, requests.get(name), limits.get(name), several=True)
            yield from _broken(POD, amounts, own, both, sources)
    if of_claims:
        yield from _claims(template, of_claims)


def _of_container(container: ContainerResources, wrote: Written, name: str) -> RequestAndLimit:
    return RequestAndLimit(
        f"{container.path}.resources",
        name,
        container.requests.get(name),
        container.limits.get(name),
        own_request=name in (wrote.requests or ()),
        own_limit=name in (wrote.limits or ()),
    )


def _without_limit(amounts: RequestAndLimit) -> bool:
    # kubernetes `validateResourceRequirements`
    if amounts.own_limit or amounts.request is None:
        return False
    if amounts.limit is None:
        return not is_overcommitted(amounts.name)
    return amounts.request > amounts.limit or (amounts.request != amounts.limit and not is_overcommitted(amounts.name))


def _huge_pages_alone(container: ContainerResources, wrote: Written) -> Iterator[HugePagesAlone]:
    requests = container.requests
    if "cpu" in requests or "memory" in requests:
        return
    names = [name for name in sorted(requests) if name.startswith(pod_resources.HUGE_PAGES)]
    if names and not any(name in (wrote.limits or ()) or name in (wrote.requests or ()) for name in names):
        yield HugePagesAlone(f"{container.path}.resources", names[0], requests[names[0]])


def _above_pod(
    template: PodTemplate, resources: PodResources, written: list[Written], disputed: frozenset[str]
) -> Iterator[AbovePod]:
    # kubernetes `validatePodResourceConsistency`
    before = pod_resources.container_requests(pod_resources.of_template(template))
    for name, amount in pod_resources.container_requests(resources).items():
        most = resources.requests.get(name)
        if name not in disputed and most is not None and before.get(name, 0) <= most < amount:
            yield AbovePod(f"spec.resources.requests[{name}]", amount, most, requested=True)
    for container, wrote in zip(resources.containers, written, strict=True):
        for name, amount in container.limits.items() if not container.init else ():
            most = resources.limits.get(name)
            if name not in disputed and name not in (wrote.limits or ()) and most is not None and amount > most:
                yield AbovePod(f"{container.path}.resources.limits[{name}]", amount, most, requested=False)


def _claims(template: PodTemplate, of_claims: Mapping[str, Sourced]) -> Iterator[OutOfBounds]:
    for index, volume in enumerate((template.spec and template.spec.volumes) or ()):
        if claim := volume.ephemeral and volume.ephemeral.volume_claim_template:
            path = f"spec.volumes[{index}].ephemeral.volumeClaimTemplate.spec.resources"
            wrote = (claim.spec and claim.spec.resources) or Written()
            requests = read_amounts(wrote.requests)
            for name, (own, sources) in of_claims.items():
                request = requests.get(name)
                # LimitRanger checks only the requests of claims.
                yield from _broken(CLAIM, RequestAndLimit(path, name, request, request), own, own, sources)


def _broken(
    kind: str, amounts: RequestAndLimit, own: Bounds, allowed: Bounds, sources: tuple[str, ...]
) -> Iterator[OutOfBounds]:
    """The violated bounds of `own`, with fixes within the bounds of `allowed`."""
    for bound in own.broken(amounts.request, amounts.limit):
        yield OutOfBounds(kind, amounts, bound, own, amounts.fitting(allowed), sources)
