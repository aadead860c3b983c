"""ResourceQuotas: what the pods and other objects of a namespace may take together."""

import msgspec

from webhook.api.pod_resources import parse_amounts
from webhook.cluster.resource import Wire, namespaced
from webhook.quota.resource_quota import ResourceQuota
from webhook.quota.scopes import Scope


class _Expression(msgspec.Struct, rename="camel", omit_defaults=True):
    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class _ScopeSelector(msgspec.Struct, rename="camel", omit_defaults=True):
    match_expressions: list[_Expression] | None = None


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    hard: dict[str, object] | None = None
    scopes: list[str] | None = None
    scope_selector: _ScopeSelector | None = None


class _Status(msgspec.Struct, omit_defaults=True):
    hard: dict[str, object] | None = None
    used: dict[str, object] | None = None


class _ResourceQuota(Wire):
    spec: _Spec | None = None
    status: _Status | None = None


def _record(found: _ResourceQuota) -> ResourceQuota:
    """The quota as the API server's admission reads it: by its status, once the controller has written one."""
    spec, status = found.spec or _Spec(), found.status or _Status()
    selector = (spec.scope_selector and spec.scope_selector.match_expressions) or ()
    return ResourceQuota(
        namespace=found.metadata.namespace,
        name=found.metadata.name,
        hard=parse_amounts(status.hard or spec.hard),
        used=parse_amounts(status.used),
        scopes=(
            *map(Scope, spec.scopes or ()),
            *(Scope(each.scope_name, each.operator, tuple(each.values or ())) for each in selector),
        ),
    )


RESOURCE_QUOTAS = namespaced("resourcequotas", "ResourceQuota", "v1", wire=_ResourceQuota, record=_record)
