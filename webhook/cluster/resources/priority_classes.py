"""PriorityClasses: those of the scheduler, for pods."""

from dataclasses import dataclass

from webhook.cluster.resource import Wire, cluster_wide


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A class of the scheduler's, for pods; the global default is that of pods which name none."""

    name: str
    value: int = 0
    global_default: bool = False


class _PriorityClass(Wire):
    value: int = 0
    global_default: bool = False


def _record(found: _PriorityClass) -> PriorityClass:
    return PriorityClass(found.metadata.name, found.value, found.global_default)


PRIORITY_CLASSES = cluster_wide(
    "priorityclasses", "PriorityClass", "scheduling.k8s.io/v1", wire=_PriorityClass, record=_record
)
