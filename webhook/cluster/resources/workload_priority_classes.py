"""WorkloadPriorityClasses: those of Kueue, for the order in the queue."""

import msgspec

from webhook.cluster.resource import Wire, cluster_wide


class WorkloadPriorityClass(msgspec.Struct, frozen=True):
    """A class of Kueue, for the order in the queue."""

    name: str


def _record(decoded: Wire) -> WorkloadPriorityClass:
    return WorkloadPriorityClass(decoded.metadata.name)


# Kueue serves the first since 0.15, and only the second before that.
WORKLOAD_PRIORITY_CLASSES = cluster_wide(
    "workloadpriorityclasses",
    "WorkloadPriorityClass",
    "kueue.x-k8s.io/v1beta2",
    "kueue.x-k8s.io/v1beta1",
    wire=Wire,
    record=_record,
    metadata_only=True,
)
