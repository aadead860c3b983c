"""A ResourceQuota: what is hard, what is used, and which objects count."""

from dataclasses import dataclass

from webhook.api.pod_resources import Amounts, PodResources, is_pod_level
from webhook.quota.scopes import PRIORITY_CLASS, Scope, Traits

# Every container has to state these where a quota counts them, unless the pod as a whole states something
# (`podEvaluator.Constraints`). Other resources may go unstated.
_STATED = {
    "cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
    "requests.cpu": ("requests", "cpu"),
    "requests.memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"),
    "limits.memory": ("limits", "memory"),
}


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """`hard` and `used` are by the quota's own resource names (`requests.cpu`); `used` lacks what nobody counted."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts
    scopes: tuple[Scope, ...] = ()

    def counts(self, traits: Traits) -> bool:
        """Whether the object is within every scope."""
        return not self.scopes or all(map(traits.meets, self.scopes))

    @property
    def by_priority(self) -> bool:
        """Whether the class of a pod matters."""
        return any(scope.name == PRIORITY_CLASS for scope in self.scopes)

    def unstated(self, pod: PodResources) -> dict[str, list[int]]:
        """For each resource that a counted pod has to state: which of its containers (by index) do not."""
        if any(map(is_pod_level, (*pod.requests, *pod.limits))):
            return {}
        found = {}
        for resource in sorted(self.hard.keys() & _STATED.keys()):
            field, name = _STATED[resource]
            missing = [index for index, container in enumerate(pod.containers) if name not in getattr(container, field)]
            if missing:
                found[resource] = missing
        return found
