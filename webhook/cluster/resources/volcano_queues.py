"""Volcano's Queues: their state, and the limits on the total of their jobs."""

import sys
from typing import Final

import msgspec

from webhook.api import quantity
from webhook.api.pod_resources import HUGE_PAGES, Amounts, read_amounts
from webhook.api.quantity import Quantity
from webhook.cluster.resource import Wire, cluster_wide

DEFAULT: Final = "default"
"""The queue of jobs that name no queue."""
ROOT: Final = "root"
"""The parent of all other queues."""
OPEN: Final = "Open"
CLOSED: Final = frozenset({"Closed", "Closing"})

_UNLIMITED_AT_ZERO: Final = frozenset({"cpu", "memory"})
_COUNTED: Final = _UNLIMITED_AT_ZERO | {"ephemeral-storage"}


class VolcanoQueue(msgspec.Struct, frozen=True):
    """A Queue."""

    name: str
    state: str
    """Volcano's name of the state; empty before Volcano has processed the queue."""
    parent: str
    """The parent queue; empty for the root queue."""
    capability: Amounts
    """The limits on the total of all jobs. A missing resource is not limited."""
    allocated: Amounts
    """The current use of all jobs."""


class _Spec(msgspec.Struct, omit_defaults=True):
    parent: str = ""
    capability: dict[str, object] | None = None


class _Status(msgspec.Struct, omit_defaults=True):
    state: str = ""
    allocated: dict[str, object] | None = None


class _Queue(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status | None = None


def _record(decoded: _Queue) -> VolcanoQueue:
    name, spec, status = decoded.metadata.name, decoded.spec, decoded.status or _Status()
    return VolcanoQueue(
        name=name,
        state=sys.intern(status.state),
        parent="" if name == ROOT else sys.intern(spec.parent or ROOT),
        capability=_bounds(read_amounts(spec.capability)),
        allocated=read_amounts(status.allocated),
    )


def _bounds(amounts: Amounts) -> Amounts:
    """The limits as Volcano reads them (`NewResource` in `pkg/scheduler/api/resource_info.go`, v1.14.1).

    Zero CPU or memory means no limit. Memory is in whole bytes. Volcano ignores the number of pods, and resources that
    no container can request.
    """
    bounds = {name: amount for name, amount in amounts.items() if _is_counted(name)}
    bounds |= {name: Quantity(quantity.whole(bounds[name]) * quantity.NANO) for name in bounds.keys() & {"memory"}}
    return {name: amount for name, amount in bounds.items() if amount > 0 or name not in _UNLIMITED_AT_ZERO}


def _is_counted(name: str) -> bool:
    if "/" in name:
        return not name.startswith(("count/", "requests."))
    return name in _COUNTED or name.startswith(HUGE_PAGES)


VOLCANO_QUEUES = cluster_wide(
    "queues",
    "Queue",
    "scheduling.volcano.sh/v1beta1",
    wire=_Queue,
    record=_record,
    group=lambda queue: queue.parent,
)
