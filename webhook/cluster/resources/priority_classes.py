"""PriorityClasses: those of the scheduler, for pods."""

from dataclasses import dataclass

from webhook.cluster.resource import Wire, cluster_wide


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A class of the scheduler's, for pods."""

    name: str


def _record(found: Wire) -> PriorityClass:
    return PriorityClass(found.metadata.name)


PRIORITY_CLASSES = cluster_wide(
    "priorityclasses", "PriorityClass", "scheduling.k8s.io/v1", wire=Wire, record=_record, metadata_only=True
)
