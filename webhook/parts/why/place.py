"""The place of a Workload in its queue: higher priority first, then older first.

Source: Kueue `pkg/cache/queue/cluster_queue.go` (`queueOrderingFunc`).
"""

from collections.abc import Sequence
from datetime import datetime

from webhook.parts.why import loose
from webhook.parts.why.sight import Json, QueuePlace, created


def waits(workload: Json) -> bool:
    done = any(loose.holds(workload, kind) for kind in ("QuotaReserved", "Finished"))
    return not done and loose.at(workload, "spec", "active") is not False


def place(workload: Json, workloads: Sequence[Json]) -> QueuePlace | None:
    """The Workload's place; None if it does not wait. `workloads` are all Workloads of the namespace."""
    queue = loose.text(workload, "spec", "queueName")
    waiting = [other for other in workloads if waits(other) and loose.text(other, "spec", "queueName") == queue]
    names = [loose.name(other) for other in sorted(waiting, key=_order)]
    if loose.name(workload) not in names:
        return None
    return QueuePlace(names.index(loose.name(workload)) + 1, len(names), f"LocalQueue {queue}")


def _order(workload: Json) -> tuple[int, datetime, str]:
    return -(loose.number(workload, "spec", "priority") or 0), created(workload), loose.name(workload)
