"""The place of a Workload among those that wait, as Kueue orders them.

Kueue `pkg/cache/queue/cluster_queue.go` (`queueOrderingFunc`): higher priority first, of one priority the older.
"""

from collections.abc import Sequence
from datetime import datetime

from webhook.parts.why import loose
from webhook.parts.why.sight import Json, QueuePlace, created


def waits(workload: Json) -> bool:
    """Whether it has no quota yet and is to get some."""
    done = any(loose.holds(workload, kind) for kind in ("QuotaReserved", "Finished"))
    return not done and loose.at(workload, "spec", "active") is not False


def place(workload: Json, others: Sequence[Json]) -> QueuePlace | None:
    """Its place in its LocalQueue; `others` are all Workloads of the namespace."""
    queue = loose.text(workload, "spec", "queueName")
    waiting = [each for each in others if waits(each) and loose.text(each, "spec", "queueName") == queue]
    ordered = sorted(waiting, key=_order)
    names = [loose.name(each) for each in ordered]
    if loose.name(workload) not in names:
        return None
    return QueuePlace(names.index(loose.name(workload)) + 1, len(names), f"LocalQueue {queue}")


def told(pending: Json, name: str, queue: str) -> QueuePlace | None:
    """The same, as Kueue's visibility API says it."""
    found = loose.items(pending, "items")
    for each in found:
        position = loose.number(each, "positionInLocalQueue")
        if loose.name(each) == name and position is not None:
            return QueuePlace(position + 1, max(len(found), position + 1), f"LocalQueue {queue}")
    return None


def _order(workload: Json) -> tuple[int, datetime, str]:
    return -(loose.number(workload, "spec", "priority") or 0), created(workload), loose.name(workload)
