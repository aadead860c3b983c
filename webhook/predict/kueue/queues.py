"""The queues of a namespace, and the reasons why a LocalQueue takes no jobs.

As in kueue `pkg/scheduler/scheduler.go` (`nominate`) and `pkg/controller/core/localqueue_controller.go`.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import Final

import msgspec

from webhook.api.kueue import FRAMEWORK
from webhook.cluster.resources.cluster_queues import CLUSTER_QUEUES, ClusterQueue
from webhook.cluster.resources.local_queues import LOCAL_QUEUES, LocalQueue
from webhook.cluster.view import ABSENT, UNKNOWN, ClusterView, Unknown
from webhook.predict.kueue.managed import configuration, namespace_labels
from webhook.predict.limits import MAX_SHOWN_LOCAL_QUEUES

DEFAULT: Final = "default"
"""The LocalQueue that Kueue gives to a job without a queue (kueue `jobframework/defaults.go`)."""


class State(Enum):
    """Why a queue takes no job. If Kueue has a message for the reason, the value is this message."""

    ABSENT = "LocalQueue {name} doesn't exist"
    STOPPED = "LocalQueue {name} is stopped ({detail})"  # by an administrator, who may resume it
    NO_CLUSTER_QUEUE = "ClusterQueue {cluster_queue} doesn't exist"
    CLUSTER_QUEUE_STOPPED = "ClusterQueue {cluster_queue} is stopped ({detail})"
    INACTIVE = "ClusterQueue {cluster_queue} is inactive ({detail})"  # detail: Kueue's reason
    NAMESPACE = "namespace doesn't match its selector (ClusterQueue {cluster_queue})"


class QueueFault(msgspec.Struct, frozen=True):
    """`detail` is the queue's stop policy, or Kueue's reason."""

    state: State
    cluster_queue: str = ""
    detail: str = ""

    def in_words(self, name: str) -> str:
        return self.state.value.format(name=name, cluster_queue=self.cluster_queue, detail=self.detail)


def fault(view: ClusterView, namespace: str, name: str) -> QueueFault | None:
    """The reason why the LocalQueue takes no jobs; None if it takes jobs, or if that is unknown."""
    queue = view.get(LOCAL_QUEUES, (namespace, name))
    if queue is ABSENT:
        return QueueFault(State.ABSENT)
    return _fault(view, queue) if isinstance(queue, LocalQueue) else None


def takes_jobs(view: ClusterView, namespace: str, name: str) -> bool:
    """True if the LocalQueue certainly takes jobs."""
    queue = view.get(LOCAL_QUEUES, (namespace, name))
    if not isinstance(queue, LocalQueue) or not queue.active or _fault(view, queue) is not None:
        return False
    return view.get(CLUSTER_QUEUES, queue.cluster_queue) is not UNKNOWN


def of_namespace(view: ClusterView, namespace: str) -> str:
    """The LocalQueue for jobs without a queue: `default`, or else the only LocalQueue; empty if this is uncertain."""
    local_queues = view.within(LOCAL_QUEUES, namespace)
    if local_queues is UNKNOWN:
        return ""
    if (namespace, DEFAULT) in local_queues:
        return DEFAULT
    return next(iter(local_queues.values())).name if len(local_queues) == 1 else ""


def of_job(view: ClusterView, namespace: str, label: object) -> str | Unknown:
    """The LocalQueue of a job with this label after Kueue's webhook has run; empty if the job has no queue.

    Kueue puts a job without a queue into `default`, if that queue exists (`jobframework/defaults.go`). Namespaces with
    unknown labels are assumed to match Kueue's selector. UNKNOWN if the queues are unknown, or if Kueue suspends every
    job until a user names a queue. If neither queues nor Kueue's configuration are visible, the cluster is assumed to
    have no Kueue.
    """
    if isinstance(label, str) and label:
        return label
    config, labels = configuration(view), namespace_labels(view, namespace)
    if config is not UNKNOWN and (
        FRAMEWORK not in config.frameworks or (labels is not UNKNOWN and not config.namespaces.matches(labels))
    ):
        return ""
    default = view.get(LOCAL_QUEUES, (namespace, DEFAULT))
    if default is UNKNOWN:
        return UNKNOWN if config is not UNKNOWN else ""
    if default is not ABSENT:
        return DEFAULT
    return UNKNOWN if config is not UNKNOWN and config.manages_without_queue else ""


def advice(view: ClusterView, namespace: str, name: str) -> str:
    """The fix if the LocalQueue `name` takes no jobs: the first few queues without a known fault."""
    queues = view.within(LOCAL_QUEUES, namespace)
    candidates = () if queues is UNKNOWN else (queue for _, queue in sorted(queues.items()) if queue.name != name)
    usable_names = (queue.name for queue in candidates if not _fault(view, queue))
    others = " or ".join(islice(usable_names, MAX_SHOWN_LOCAL_QUEUES))
    return f"Use {others}." if others else "Ask for a queue."


def cluster_queue(view: ClusterView, namespace: str, name: str) -> ClusterQueue | None:
    """The ClusterQueue of the LocalQueue `name`; None if one of the two is missing or unknown."""
    queue = view.get(LOCAL_QUEUES, (namespace, name))
    if not isinstance(queue, LocalQueue):
        return None
    behind = view.get(CLUSTER_QUEUES, queue.cluster_queue)
    return behind if isinstance(behind, ClusterQueue) else None


def usable(view: ClusterView, namespace: str) -> Iterator[tuple[str, ClusterQueue]]:
    """(name, ClusterQueue) of the LocalQueues that take jobs, sorted by name."""
    local_queues = view.within(LOCAL_QUEUES, namespace)
    if local_queues is UNKNOWN:
        return
    for _, queue in sorted(local_queues.items()):
        behind = view.get(CLUSTER_QUEUES, queue.cluster_queue)
        if isinstance(behind, ClusterQueue) and _fault(view, queue) is None:
            yield queue.name, behind


def _fault(view: ClusterView, queue: LocalQueue) -> QueueFault | None:
    if queue.stop_policy:
        return QueueFault(State.STOPPED, queue.cluster_queue, queue.stop_policy)
    behind = view.get(CLUSTER_QUEUES, queue.cluster_queue)
    if behind is ABSENT:
        return QueueFault(State.NO_CLUSTER_QUEUE, queue.cluster_queue)
    if behind is UNKNOWN:
        # If the webhook may not read the ClusterQueue, the LocalQueue's status may still have Kueue's reason.
        return QueueFault(State.INACTIVE, queue.cluster_queue, queue.inactive) if queue.inactive else None
    return _fault_behind(view, queue.namespace, behind)


def _fault_behind(view: ClusterView, namespace: str, queue: ClusterQueue) -> QueueFault | None:
    if queue.stop_policy:
        return QueueFault(State.CLUSTER_QUEUE_STOPPED, queue.name, queue.stop_policy)
    if queue.inactive:
        return QueueFault(State.INACTIVE, queue.name, queue.inactive)
    labels = namespace_labels(view, namespace)
    if labels is not UNKNOWN and not queue.namespaces.matches(labels):
        return QueueFault(State.NAMESPACE, queue.name)
    return None
