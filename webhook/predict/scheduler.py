"""Predicts whether kube-scheduler could put a pod on an empty node.

https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/scheduler/framework/plugins (the filters of `noderesources`,
`nodeaffinity` and `tainttoleration`). Other filters are assumed to pass, so a pod that fits no node according to
this module is never scheduled. A node shape is the common properties of equal nodes.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from webhook.api.pod import NodeRequirement, NodeTerm, PodTemplate, Toleration
from webhook.api.pod_resources import Amounts
from webhook.api.quantity import Quantity
from webhook.api.taints import untolerated
from webhook.cluster.resources.nodes import NodeShape, coarse, uncut


def satisfies(labels: Mapping[str, str], requirement: NodeRequirement) -> bool:
    """True also for an invalid requirement, because other rules report it."""
    value = labels.get(requirement.key)
    values = requirement.values or []
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, requirement.operator, values)
        case _:
            return True


def _compares(value: str | None, operator: str, values: Sequence[str]) -> bool:
    if value is None:
        return False
    try:
        label, bound = int(value), int(values[0])
    except (ValueError, IndexError):
        return True
    return label > bound if operator == "Gt" else label < bound


class Room(msgspec.Struct, frozen=True, gc=False):
    """A demand for an amount of a resource."""

    resource: str
    amount: Quantity
    shown: Quantity
    """`amount`, rounded like the amounts of nodes (`coarse`)."""

    def met(self, shape: NodeShape) -> bool:
        return shape.allocatable.get(self.resource, 0) >= self.shown

    def times(self, allocatable: Amounts) -> int:
        """The number of pods that fit on a node, computed with the highest amount that rounds to the node's amount."""
        return uncut(self.resource, allocatable.get(self.resource, Quantity(0))) // self.amount


class Label(msgspec.Struct, frozen=True, gc=False):
    """A demand for a label."""

    key: str
    value: str

    def met(self, shape: NodeShape) -> bool:
        """True also if the label's value varies between nodes of the shape."""
        return shape.labels.get(self.key) == self.value or self.key in shape.varying


class Affinity(msgspec.Struct, frozen=True, gc=False):
    """A demand to match one of these terms, each of which has a condition."""

    terms: tuple[NodeTerm, ...]

    def met(self, shape: NodeShape) -> bool:
        """Ignores conditions on fields, which compare only the node's name."""
        return any(
            all(requirement_met(requirement, shape) for requirement in term.match_expressions or ())
            for term in self.terms
        )


class Tolerated(msgspec.Struct, frozen=True, gc=False):
    """A demand for a node whose taints are all tolerated."""

    tolerations: tuple[Toleration, ...]

    def met(self, shape: NodeShape) -> bool:
        return not (shape.taints and untolerated(shape.taints, self.tolerations))


Demand = Room | Label | Affinity | Tolerated


class Lack(msgspec.Struct, frozen=True):
    """An unmet demand."""

    demand: Demand
    near: tuple[NodeShape, ...]
    """The shapes that meet all other demands; all shapes if no shape meets them."""
    everywhere: bool
    """True if no node meets the demand."""


def requirement_met(requirement: NodeRequirement, shape: NodeShape) -> bool:
    """True also if the label's value varies between nodes of the shape."""
    return requirement.key in shape.varying or satisfies(shape.labels, requirement)


def demands(template: PodTemplate, requests: Amounts, tolerations: Collection[Toleration] | None) -> tuple[Demand, ...]:
    """All demands of a pod. Demands that few nodes meet come first.

    `requests` are those of the whole pod. `tolerations` is None if they are unknown; taints are then ignored.
    """
    result: list[Demand] = [
        Room(name, amount, amount)
        for name, amount in requests.items()
        if amount > 0 and ("/" in name or name.startswith("hugepages-"))
    ]
    result += [Label(key, value) for key, value in template.node_selector.items()]
    affinity = template.spec and template.spec.affinity and template.spec.affinity.node_affinity
    if affinity and affinity.required_during_scheduling_ignored_during_execution:
        terms = (term for term in template.node_terms if term.match_expressions or term.match_fields)
        result.append(Affinity(tuple(terms)))
    if tolerations is not None:
        result.append(Tolerated(tuple(tolerations)))
    result += [
        Room(name, amount, coarse(name, amount))
        for name in ("cpu", "memory", "ephemeral-storage")
        if (amount := requests.get(name, Quantity(0))) > 0
    ]
    return tuple(result)


def fits(required: Collection[Demand], shapes: Collection[NodeShape]) -> bool:
    return any(all(demand.met(shape) for demand in required) for shape in shapes)


def pods_per_node(required: Collection[Demand], shape: NodeShape) -> int | None:
    """The maximum number of these pods on an empty node of the shape; None if it is unlimited."""
    if not all(demand.met(shape) for demand in required):
        return 0
    return min((room.times(shape.allocatable) for room in required if isinstance(room, Room)), default=None)


def lacks(required: Collection[Demand], shapes: Collection[NodeShape]) -> list[Lack]:
    """Why no shape fits: the demands that no shape meets.

    If there are no such demands, the result is the unmet demands of the shape with the fewest unmet demands.
    """
    unmet = [demand for demand in required if not any(demand.met(shape) for shape in shapes)]
    everywhere = bool(unmet)
    if not unmet:
        unmet = min(([demand for demand in required if not demand.met(shape)] for shape in shapes), key=len)
    others = [demand for demand in required if demand not in unmet]
    near = tuple(shape for shape in shapes if all(demand.met(shape) for demand in others)) or tuple(shapes)
    return [Lack(demand, near, everywhere) for demand in unmet]
