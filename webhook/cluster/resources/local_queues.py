"""Kueue's LocalQueues: they connect a namespace to ClusterQueues."""

import msgspec

from webhook.api import kueue
from webhook.cluster.resource import Wire, namespaced


class LocalQueue(msgspec.Struct, frozen=True):
    """A LocalQueue."""

    namespace: str
    name: str
    cluster_queue: str
    stop_policy: str
    """Kueue's stop policy; empty if the queue is not stopped."""
    inactive: str
    """Kueue's reason why the queue is inactive; empty if it is active."""
    active: bool
    """Whether Kueue reports that the queue is active."""


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    cluster_queue: str = ""
    stop_policy: str | None = None


class _LocalQueue(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: kueue.QueueStatus | None = None


def _record(decoded: _LocalQueue) -> LocalQueue:
    metadata, spec = decoded.metadata, decoded.spec
    return LocalQueue(
        metadata.namespace,
        metadata.name,
        spec.cluster_queue,
        kueue.stopped(spec.stop_policy),
        kueue.inactive_reason(decoded.status),
        kueue.is_active(decoded.status),
    )


LOCAL_QUEUES = namespaced("localqueues", "LocalQueue", *kueue.API_VERSIONS, wire=_LocalQueue, record=_record)
