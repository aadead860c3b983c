"""Kueue's ClusterQueues: the namespaces that may use them, and their quotas by flavor."""

import sys

import msgspec

from webhook.api import kueue
from webhook.api.labels import Selector
from webhook.cluster.resource import Wire, cluster_wide


class ClusterQueue(msgspec.Struct, frozen=True):
    """A ClusterQueue."""

    name: str
    cohort: str
    """The parent Cohort; empty for none."""
    namespaces: Selector
    """The namespaces whose LocalQueues may use the queue."""
    stop_policy: str
    """Kueue's stop policy; empty if the queue is not stopped."""
    inactive: str
    """Kueue's reason why the queue is inactive; empty if it is active."""
    groups: tuple[kueue.Group, ...]
    quotas: kueue.Quotas
    checks: tuple[str, ...]
    """The names of the AdmissionChecks that a job needs in addition to quota."""


class _Check(msgspec.Struct, omit_defaults=True):
    name: str = ""


class _Strategy(msgspec.Struct, rename="camel", omit_defaults=True):
    admission_checks: list[_Check] | None = None


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    cohort_name: str = ""
    cohort: str = ""  # the name of `cohortName` in v1beta1
    namespace_selector: object = None
    stop_policy: str | None = None
    resource_groups: list[kueue.ResourceGroup] | None = None
    admission_checks: list[str] | None = None  # only in v1beta1
    admission_checks_strategy: _Strategy | None = None


class _ClusterQueue(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: kueue.QueueStatus | None = None


def _record(decoded: _ClusterQueue) -> ClusterQueue:
    spec = decoded.spec
    strategy = spec.admission_checks_strategy or _Strategy()
    return ClusterQueue(
        name=decoded.metadata.name,
        cohort=sys.intern(spec.cohort_name or spec.cohort),
        namespaces=Selector.parse(spec.namespace_selector),
        stop_policy=kueue.stopped(spec.stop_policy),
        inactive=kueue.inactive_reason(decoded.status),
        groups=kueue.groups(spec.resource_groups),
        quotas=kueue.quotas(spec.resource_groups),
        checks=tuple(
            map(sys.intern, spec.admission_checks or (check.name for check in strategy.admission_checks or ()))
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
