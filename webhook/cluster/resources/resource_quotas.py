"""ResourceQuotas: limits on all pods and other objects of a namespace together."""

from typing import Any

import msgspec

from webhook.api.pod_resources import Amounts, PodResources, is_pod_level, parse_amounts
from webhook.api.quota_scopes import PRIORITY_CLASS, Scope, Traits
from webhook.cluster.resource import Wire, namespaced


class _Expression(msgspec.Struct, rename="camel", omit_defaults=True):
    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class _ScopeSelector(msgspec.Struct, rename="camel", omit_defaults=True):
    match_expressions: list[_Expression] | None = None


class QuotaSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """The limits."""

    hard: dict[str, object] | None = None
    scopes: list[str] | None = None
    scope_selector: _ScopeSelector | None = None


class QuotaStatus(msgspec.Struct, omit_defaults=True):
    """The use counted by the quota controller."""

    hard: dict[str, object] | None = None
    used: dict[str, object] | None = None


class _ResourceQuota(Wire):
    spec: QuotaSpec | None = None
    status: QuotaStatus | None = None


# If a quota counts these resources, every container must set them, unless the pod sets a pod-level value
# (`podEvaluator.Constraints`). Other resources may be left out.
_STATED = {
    "cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
    "requests.cpu": ("requests", "cpu"),
    "requests.memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"),
    "limits.memory": ("limits", "memory"),
}


class ResourceQuota(msgspec.Struct, frozen=True):
    """A quota. Amounts are by the quota's resource names (`requests.cpu`)."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts
    """The used amounts. They lag behind the newest objects."""
    scopes: tuple[Scope, ...] = ()

    @property
    def reach(self) -> str:
        """The scope of the quota in messages."""
        return "namespace" if self.namespace else "cluster"

    def counts(self, traits: Traits) -> bool:
        """Whether the quota counts the object: it is within every scope."""
        return not self.scopes or all(map(traits.meets, self.scopes))

    @property
    def by_priority(self) -> bool:
        """Whether the quota depends on the pod's priority class."""
        return any(scope.name == PRIORITY_CLASS for scope in self.scopes)

    def unstated(self, pod: PodResources) -> dict[str, list[int]]:
        """The containers (by index) that lack a required resource, by this resource."""
        if any(map(is_pod_level, (*pod.requests, *pod.limits))):
            return {}
        unstated = {}
        for resource in sorted(self.hard.keys() & _STATED.keys()):
            field, name = _STATED[resource]
            missing = [index for index, container in enumerate(pod.containers) if name not in getattr(container, field)]
            if missing:
                unstated[resource] = missing
        return unstated


def limits(spec: QuotaSpec, status: QuotaStatus) -> dict[str, Any]:
    """The fields of a quota. Like in the API server's admission, limits in the status replace those in the spec.

    The status has no limits before the quota controller has written them.
    """
    selector = (spec.scope_selector and spec.scope_selector.match_expressions) or ()
    return {
        "hard": parse_amounts(status.hard or spec.hard),
        "used": parse_amounts(status.used),
        "scopes": (
            *map(Scope, spec.scopes or ()),
            *(Scope(each.scope_name, each.operator, tuple(each.values or ())) for each in selector),
        ),
    }


def _record(found: _ResourceQuota) -> ResourceQuota:
    metadata = found.metadata
    counted = limits(found.spec or QuotaSpec(), found.status or QuotaStatus())
    return ResourceQuota(metadata.namespace, metadata.name, **counted)


RESOURCE_QUOTAS = namespaced("resourcequotas", "ResourceQuota", "v1", wire=_ResourceQuota, record=_record)
