"""Volcano's Queues: whether they take jobs, and how much these may have together."""

import sys
from typing import Final

import msgspec

from webhook.api.pod_resources import Amounts, read_amounts
from webhook.cluster.resource import Wire, cluster_wide

DEFAULT: Final = "default"
"""The queue of jobs that name none."""
ROOT: Final = "root"
"""The queue above all others."""
OPEN: Final = "Open"
CLOSED: Final = frozenset({"Closed", "Closing"})


class VolcanoQueue(msgspec.Struct, frozen=True):
    """A Queue."""

    name: str
    state: str
    """Volcano's word for it; empty before Volcano has looked at it."""
    parent: str
    """The queue above; empty for the one at the top."""
    capability: Amounts
    """The most that its jobs may have together; what is not in it has no bound."""
    allocated: Amounts
    """What they have now."""


class _Spec(msgspec.Struct, omit_defaults=True):
    parent: str = ""
    capability: dict[str, object] | None = None


class _Status(msgspec.Struct, omit_defaults=True):
    state: str = ""
    allocated: dict[str, object] | None = None


class _Queue(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status | None = None


def _record(found: _Queue) -> VolcanoQueue:
    name, spec, status = found.metadata.name, found.spec, found.status or _Status()
    return VolcanoQueue(
        name=name,
        state=sys.intern(status.state),
        parent="" if name == ROOT else sys.intern(spec.parent or ROOT),
        capability=_bounds(read_amounts(spec.capability)),
        allocated=read_amounts(status.allocated),
    )


def _bounds(written: Amounts) -> Amounts:
    """Of CPU and memory nothing means no bound, of pods nothing is counted (volcano `pkg/scheduler`, v1.14.1)."""
    return {
        name: amount
        for name, amount in written.items()
        if name != "pods" and (amount > 0 or name not in {"cpu", "memory"})
    }


VOLCANO_QUEUES = cluster_wide(
    "queues",
    "Queue",
    "scheduling.volcano.sh/v1beta1",
    wire=_Queue,
    record=_record,
    group=lambda queue: queue.parent,
)
