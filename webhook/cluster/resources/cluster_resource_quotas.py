"""OpenShift's ClusterResourceQuotas: limits on all objects of several namespaces together.

https://github.com/openshift/api/blob/master/quota/v1/types.go
"""

import msgspec

from webhook.cluster.resource import Wire, cluster_wide
from webhook.cluster.resources.resource_quotas import QuotaSpec, QuotaStatus, ResourceQuota, limits


class _Spec(msgspec.Struct, omit_defaults=True):
    quota: QuotaSpec | None = None


class _InNamespace(msgspec.Struct, omit_defaults=True):
    namespace: str = ""


class _Status(msgspec.Struct, omit_defaults=True):
    total: QuotaStatus | None = None
    namespaces: list[_InNamespace] | None = None


class _ClusterResourceQuota(Wire):
    spec: _Spec | None = None
    status: _Status | None = None


class ClusterResourceQuota(ResourceQuota, frozen=True):
    """A quota for several namespaces."""

    namespaces: frozenset[str] = frozenset()
    """The selected namespaces, from the status."""


def _record(decoded: _ClusterResourceQuota) -> ClusterResourceQuota:
    spec, status = decoded.spec or _Spec(), decoded.status or _Status()
    return ClusterResourceQuota(
        "",
        f"clusterresourcequota/{decoded.metadata.name}",  # a ResourceQuota may have the same name
        **limits(spec.quota or QuotaSpec(), status.total or QuotaStatus()),
        namespaces=frozenset(entry.namespace for entry in status.namespaces or ()),
    )


CLUSTER_RESOURCE_QUOTAS = cluster_wide(
    "clusterresourcequotas",
    "ClusterResourceQuota",
    "quota.openshift.io/v1",
    wire=_ClusterResourceQuota,
    record=_record,
)
