"""Kueue's WorkloadPriorityClasses, which define the order in a queue."""

import msgspec

from webhook.cluster.resource import Wire, cluster_wide


class WorkloadPriorityClass(msgspec.Struct, frozen=True):
    """A priority class of Kueue."""

    name: str


# Kueue serves v1beta2 since release 0.15.
WORKLOAD_PRIORITY_CLASSES = cluster_wide(
    "workloadpriorityclasses",
    "WorkloadPriorityClass",
    "kueue.x-k8s.io/v1beta2",
    "kueue.x-k8s.io/v1beta1",
    wire=Wire,
    record=lambda decoded: WorkloadPriorityClass(decoded.metadata.name),
    metadata_only=True,
)
