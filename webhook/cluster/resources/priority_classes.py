"""PriorityClasses of pods."""

import msgspec

from webhook.cluster.resource import Wire, cluster_wide

PREEMPTS = "PreemptLowerPriority"
"""The default preemption policy."""
PREEMPTION_POLICIES = frozenset({PREEMPTS, "Never"})


class PriorityClass(msgspec.Struct, frozen=True):
    """A priority class."""

    name: str
    value: int = 0
    global_default: bool = False
    """Pods without a class get this class."""
    preemption_policy: str = PREEMPTS


class _PriorityClass(Wire):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


def _record(decoded: _PriorityClass) -> PriorityClass:
    return PriorityClass(
        decoded.metadata.name, decoded.value, decoded.global_default, decoded.preemption_policy or PREEMPTS
    )


PRIORITY_CLASSES = cluster_wide(
    "priorityclasses", "PriorityClass", "scheduling.k8s.io/v1", wire=_PriorityClass, record=_record
)
