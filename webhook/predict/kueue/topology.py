"""Topology-aware scheduling: the topology that a pod set's annotations request.

As in kueue `pkg/controller/jobframework/tas.go` and `pkg/scheduler/flavorassigner/tas_flavorassigner.go`.
"""

from collections.abc import Collection, Mapping
from typing import Final, Self

import msgspec

from webhook.api.accelerators import DEFAULT_ACCELERATORS, is_accelerator
from webhook.api.kueue import PREFIX

REQUIRED: Final = PREFIX + "podset-required-topology"
PREFERRED: Final = PREFIX + "podset-preferred-topology"
UNCONSTRAINED: Final = PREFIX + "podset-unconstrained-topology"
SLICE: Final = PREFIX + "podset-slice-required-topology"
SLICE_SIZE: Final = PREFIX + "podset-slice-size"
LAYERS: Final = PREFIX + "podset-slice-required-topology-constraints"
POD_SET_GROUP: Final = PREFIX + "podset-group-name"


def request_for(covered: Collection[str]) -> str:
    """The resource that pods without requests should request: without any request, they get no flavor with a topology.

    `covered` are the flavor's resources. CPU is preferred, then memory, then accelerators. An amount of 0 is enough.
    """
    accelerators = {name for name in covered if is_accelerator(name, DEFAULT_ACCELERATORS)}
    return min(covered, key=lambda name: (name != "cpu", name != "memory", name not in accelerators, name))


# The texts that Go's strconv.ParseBool reads as false.
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class TopologyRequest(msgspec.Struct, frozen=True):
    """The request in the annotations of a pod set."""

    explicit: bool = False
    """True if the pod set has topology annotations."""
    levels: tuple[str, ...] = ()
    """The levels that a topology must have."""
    possible: bool = True
    """False if no topology meets the request."""
    group: str = ""
    """The name of the pod set group. Pod sets of a group share their flavors."""

    @classmethod
    def of(cls, annotations: Mapping[str, str]) -> Self | None:
        """The request in `annotations`; None if their meaning depends on Kueue's version."""
        if LAYERS in annotations:
            return None
        main = annotations.get(REQUIRED, annotations.get(PREFERRED))
        slices = annotations[SLICE] if SLICE in annotations and SLICE_SIZE in annotations else None
        if main is None and UNCONSTRAINED not in annotations and slices is None:
            return cls()
        # `unconstrained: "false"` alone requests topology-aware scheduling at no level, so no topology meets it.
        possible = main is not None or slices is not None or annotations[UNCONSTRAINED] not in _FALSE
        group = annotations.get(POD_SET_GROUP, "") if main is not None else ""
        return cls(True, tuple(level for level in (main, slices) if level is not None), possible, group)
