"""OpenShift's ClusterResourceQuotas: what the objects of several namespaces may take together.

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
    """A quota of the `namespaces` that OpenShift lists in its status: those that it selects."""

    namespaces: frozenset[str] = frozenset()


def _record(found: _ClusterResourceQuota) -> ClusterResourceQuota:
    spec, status = found.spec or _Spec(), found.status or _Status()
    return ClusterResourceQuota(
        "",
        f"clusterresourcequota/{found.metadata.name}",  # a ResourceQuota may have its name
        **limits(spec.quota or QuotaSpec(), status.total or QuotaStatus()),
        namespaces=frozenset(each.namespace for each in status.namespaces or ()),
    )


CLUSTER_RESOURCE_QUOTAS = cluster_wide(
    "clusterresourcequotas",
    "ClusterResourceQuota",
    "quota.openshift.io/v1",
    wire=_ClusterResourceQuota,
    record=_record,
)
