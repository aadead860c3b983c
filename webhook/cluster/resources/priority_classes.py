"""PriorityClasses of the scheduler, for pods."""

import msgspec

from webhook.cluster.resource import Wire, cluster_wide

PREEMPTS = "PreemptLowerPriority"
"""The default preemption policy of a class."""

PREEMPTION_POLICIES = frozenset({PREEMPTS, "Never"})
"""All valid policies."""


class PriorityClass(msgspec.Struct, frozen=True):
    """A priority class. Pods without a class get the global default."""

    name: str
    value: int = 0
    global_default: bool = False
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
