"""ResourceQuotas: limits on the total of all objects of a namespace."""

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
    """The limits of a quota."""

    hard: dict[str, object] | None = None
    scopes: list[str] | None = None
    scope_selector: _ScopeSelector | None = None


class QuotaStatus(msgspec.Struct, omit_defaults=True):
    """The limits and the use, as the quota controller has written them."""

    hard: dict[str, object] | None = None
    used: dict[str, object] | None = None


class _ResourceQuota(Wire):
    spec: QuotaSpec | None = None
    status: QuotaStatus | None = None


# If a quota limits one of these resources, each container must set the field. Pods with pod-level values are exempt
# (kubernetes `podEvaluator.Constraints`).
_REQUIRED_FIELDS = {
    "cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
    "requests.cpu": ("requests", "cpu"),
    "requests.memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"),
    "limits.memory": ("limits", "memory"),
}


class ResourceQuota(msgspec.Struct, frozen=True):
    """A quota. The keys of `hard` and `used` are resource names as quotas write them, such as `requests.cpu`."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts
    """The used amounts, perhaps without the newest objects."""
    scopes: tuple[Scope, ...] = ()

    @property
    def reach(self) -> str:
        """The word for the quota's scope in messages."""
        return "namespace" if self.namespace else "cluster"

    def counts(self, traits: Traits) -> bool:
        """Whether the quota counts an object with these traits."""
        return all(map(traits.meets, self.scopes))

    @property
    def by_priority(self) -> bool:
        """Whether the quota depends on the priority class of pods."""
        return any(scope.name == PRIORITY_CLASS for scope in self.scopes)

    def unstated(self, pod: PodResources) -> dict[str, list[int]]:
        """The indices of the containers that do not set a required field, by the quota's resource."""
        if any(map(is_pod_level, (*pod.requests, *pod.limits))):
            return {}
        unstated = {}
        for resource in sorted(self.hard.keys() & _REQUIRED_FIELDS.keys()):
            field, name = _REQUIRED_FIELDS[resource]
            missing = [index for index, container in enumerate(pod.containers) if name not in getattr(container, field)]
            if missing:
                unstated[resource] = missing
        return unstated


def limits(spec: QuotaSpec, status: QuotaStatus) -> dict[str, Any]:
    """The fields of a ResourceQuota. Limits in the status replace the limits in the spec, as in the API server."""
    selector = (spec.scope_selector and spec.scope_selector.match_expressions) or ()
    return {
        "hard": parse_amounts(status.hard or spec.hard),
        "used": parse_amounts(status.used),
        "scopes": (
            *map(Scope, spec.scopes or ()),
            *(Scope(term.scope_name, term.operator, tuple(term.values or ())) for term in selector),
        ),
    }


def _record(decoded: _ResourceQuota) -> ResourceQuota:
    metadata = decoded.metadata
    fields = limits(decoded.spec or QuotaSpec(), decoded.status or QuotaStatus())
    return ResourceQuota(metadata.namespace, metadata.name, **fields)


RESOURCE_QUOTAS = namespaced("resourcequotas", "ResourceQuota", "v1", wire=_ResourceQuota, record=_record)
