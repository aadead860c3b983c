"""Kueue's ClusterQueues: who may use them, and how much of which flavor they have."""

import sys

import msgspec

from webhook.api import kueue
from webhook.api.labels import Selector
from webhook.api.pod import Presence
from webhook.cluster.resource import Wire, cluster_wide


class ClusterQueue(msgspec.Struct, frozen=True):
    """A ClusterQueue."""

    name: str
    cohort: str
    """Empty for one that stands alone."""
    namespaces: Selector
    """Whose LocalQueues may use it."""
    stop_policy: str
    """Empty for one that is not stopped."""
    inactive: str
    """Kueue's reason; empty for one that is active."""
    groups: tuple[kueue.Group, ...]
    quotas: kueue.Quotas
    has_checks: bool
    """Whether a job needs more than quota there, as with MultiKueue."""


class _Strategy(msgspec.Struct, rename="camel", omit_defaults=True):
    admission_checks: list[Presence] | None = None


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    cohort_name: str = ""
    cohort: str = ""  # its name in v1beta1
    namespace_selector: object = None
    stop_policy: str | None = None
    resource_groups: list[kueue.ResourceGroup] | None = None
    admission_checks: list[str] | None = None  # in v1beta1
    admission_checks_strategy: _Strategy | None = None


class _ClusterQueue(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: kueue.QueueStatus | None = None


def _record(found: _ClusterQueue) -> ClusterQueue:
    spec = found.spec
    return ClusterQueue(
        name=found.metadata.name,
        cohort=sys.intern(spec.cohort_name or spec.cohort),
        namespaces=Selector.parse(spec.namespace_selector),
        stop_policy=kueue.stopped(spec.stop_policy),
        inactive=kueue.inactive_reason(found.status),
        groups=kueue.groups(spec.resource_groups),
        quotas=kueue.quotas(spec.resource_groups),
        has_checks=bool(
            spec.admission_checks
            or (spec.admission_checks_strategy and spec.admission_checks_strategy.admission_checks)
        ),
    )


CLUSTER_QUEUES = cluster_wide(
    "clusterqueues",
    "ClusterQueue",
    *kueue.API_VERSIONS,
    wire=_ClusterQueue,
    record=_record,
    group=lambda queue: queue.cohort,
)
