"""The name and number of the RDMA devices that a pod should request, computed from the nodes that could run the pod.

Some device plugins offer shares of an adapter; a pod needs one share (k8s-rdma-shared-dev-plugin). Other plugins offer
whole adapters or virtual functions; a pod with half of a node's accelerators then gets half of the node's adapters. A
node shape is the common properties of equal nodes.
"""

from collections.abc import Collection
from typing import Final

import msgspec

from webhook.api import quantity
from webhook.api.accelerators import is_accelerator
from webhook.api.quantity import Quantity
from webhook.cluster.resources.nodes import NodeShape
from webhook.predict.job_pods import JobPods
from webhook.predict.limits import MAX_SHOWN_RDMA_DEVICES
from webhook.predict.scheduler import demands

HUGEPAGES: Final = "hugepages-2Mi"


class DeviceSettings(msgspec.Struct, frozen=True):
    """The administrator's settings."""

    resource: str
    """Empty to use the device that the nodes have."""
    rdma_devices: tuple[str, ...]
    """Names and patterns of all RDMA devices."""
    shared: tuple[str, ...]
    """Names and patterns of shared devices."""
    accelerators: tuple[str, ...]
    per_accelerator: int | None
    per_pod: int | None


class Undecided(Exception):
    """The message says why the device or the number is unknown."""


def holding(pods: JobPods, shapes: Collection[NodeShape]) -> list[NodeShape]:
    """The node shapes that meet the pods' requests and conditions. Taints are ignored."""
    required = demands(pods.template, pods.requests, None)
    return [shape for shape in shapes if all(demand.met(shape) for demand in required)]


def choose(settings: DeviceSettings, pods: JobPods, shapes: Collection[NodeShape]) -> tuple[str, int]:
    """(resource, number) for one pod. `shapes` are the node shapes that could run the pods; empty if unknown."""
    resource = settings.resource or _only_one(settings, shapes)
    requested = {name: amount for name, amount in pods.requests.items() if is_accelerator(name, settings.accelerators)}
    accelerators = sum(quantity.whole(amount) for amount in requested.values())
    if settings.per_pod is not None:
        return resource, settings.per_pod
    if settings.per_accelerator is not None and accelerators > 0:
        return resource, settings.per_accelerator * accelerators
    if is_accelerator(resource, settings.shared):
        return resource, 1
    spec = pods.template.spec
    # `accelerators` does not include the accelerators of resource claims.
    countable = accelerators > 0 or spec is None or not spec.resource_claims
    shares = [
        _share(
            offered, accelerators, sum(quantity.whole(shape.allocatable.get(name, Quantity(0))) for name in requested)
        )
        for shape in shapes
        if countable and (offered := quantity.whole(shape.allocatable.get(resource, Quantity(0)))) > 0
    ]
    if not shares:
        setting = "perGpu or perPod" if accelerators > 0 else "perPod"
        raise Undecided(f"how many {resource} a pod needs is unknown: set {setting} in the policy")
    return resource, min(shares)


def hugepages(amount: str | None, resource: str, pods: JobPods, shapes: Collection[NodeShape]) -> dict[str, str]:
    """The huge pages for the first container, by resource.

    Empty if a container already requests huge pages, or if the first container may not request them. Also empty if a
    node with the device has less than `amount`.
    """
    requested = {name for container in pods.resources.containers for name in (*container.requests, *container.limits)}
    if amount is None or any(name.startswith("hugepages-") for name in requested):
        return {}
    # A container with huge pages must request cpu or memory too (kubernetes `pkg/apis/core/validation`).
    first = pods.resources.containers[0]
    if not {"cpu", "memory"} & {*first.requests, *first.limits}:
        return {}
    with_device = [shape for shape in shapes if shape.allocatable.get(resource, 0) > 0]
    enough = all(shape.allocatable.get(HUGEPAGES, 0) >= quantity.parse(amount) for shape in with_device)
    return {HUGEPAGES: amount} if with_device and enough else {}


def _share(devices: int, requested: int, accelerators: int) -> int:
    """The pod's share of a node's `devices`, if the pod requests some of the node's accelerators; 1 otherwise."""
    return max(devices * requested // accelerators, 1) if requested > 0 and accelerators > 0 else 1


def _only_one(settings: DeviceSettings, shapes: Collection[NodeShape]) -> str:
    if not shapes:
        raise Undecided("no known node could run the pods, and the policy names no device")
    devices = sorted(
        {
            name
            for shape in shapes
            for name, amount in shape.allocatable.items()
            if amount > 0 and is_accelerator(name, settings.rdma_devices)
        }
    )
    if not devices:
        raise Undecided("no node that could hold the pods has an RDMA device")
    if len(devices) > 1:
        shown = ", ".join(devices[:MAX_SHOWN_RDMA_DEVICES]) + (", ..." if len(devices) > MAX_SHOWN_RDMA_DEVICES else "")
        raise Undecided(f"nodes have several RDMA devices. Choose nodes, or request one device: {shown}")
    return devices[0]
