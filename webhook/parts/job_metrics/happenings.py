"""Counts the state changes of jobs, and the current jobs with their accelerators.

Every replica counts every job, so queries take the maximum of the replicas. A replica ignores changes before its first
list of all jobs: the other replicas have counted these changes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from webhook.api import pod_resources
from webhook.api.accelerators import counted_accelerators
from webhook.api.quota_charges import PodShape
from webhook.cluster.job_lives import JobLife, Phase
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPIJobRecord
from webhook.cluster.view import ClusterView
from webhook.predict.devices import by_claims
from webhook.server.limits import MAX_USER_SERIES
from webhook.server.namespace_labels import BEYOND, Labels

UNKNOWN: Final = "_unknown"


class Counted(NamedTuple):
    """An increment of a counter, or an observation for a histogram."""

    metric: str
    namespace: str
    seconds: float | None = None
    """The observed value; None for a counter."""
    reason: tuple[str, ...] = ()
    """The reason why the job failed; empty if it has not failed."""


class Changes:
    """Derives increments and observations from two states of a job."""

    def __init__(self, jobs: Iterable[JobLife] = ()) -> None:
        """`jobs` are the existing jobs. Their past changes are not counted."""
        # uids of jobs whose first wait in a queue is over
        self._ran = {job.uid for job in jobs if job.phase is not Phase.QUEUED or (job.suspended and job.started)}

    def of(self, old: JobLife | None, new: JobLife | None) -> list[Counted]:
        """`old` is None for a new job, and `new` is None for a deleted job."""
        if old is not None and (new is None or new.uid != old.uid):
            self._ran.discard(old.uid)
            old = None
        return [] if new is None else list(self._counted(old, new))

    def _counted(self, old: JobLife | None, new: JobLife) -> Iterator[Counted]:
        if old is None:
            yield Counted("created_total", new.namespace)
        if new.running_since is not None and new.uid not in self._ran:
            yield Counted("queue_seconds", new.namespace, max(0.0, new.running_since - new.created))
        if new.phase is not Phase.QUEUED:
            self._ran.add(new.uid)
        if new.over and not (old is not None and old.over):
            reason = (new.reason,) if new.phase is Phase.FAILED else ()
            yield Counted(f"{new.phase}_total", new.namespace, reason=reason)
            if new.started is not None and new.ended is not None:
                yield Counted("duration_seconds", new.namespace, max(0.0, new.ended - new.started))


def standing(
    jobs: Iterable[JobLife],
    pods: Mapping[ByNamespace, MPIJobRecord],
    view: ClusterView,
    *,
    namespaces: Labels,
) -> Counter[tuple[str, ...]]:
    """The numbers of jobs and accelerators by metric and labels. Ended jobs and jobs being deleted are not counted."""
    counts = Counter[tuple[str, ...]]()
    of_users = Counter[tuple[str, str, str]]()
    for job in jobs:
        if job.over or job.leaving:
            continue
        namespace = namespaces.bounded(job.namespace)
        running = job.phase is Phase.RUNNING
        counts["running" if running else "queued", namespace] += 1
        record = pods.get((job.namespace, job.name))
        for role in record.pods if record is not None and record.uid == job.uid else ():
            claimed = by_claims(role.shape.device_claims, job.namespace, view)
            for name, count in (*accelerators(role.shape), *claimed):
                counts["gpus_requested", namespace, name] += role.count * count
                counts["gpus_in_use", namespace, name] += role.count * count if running else 0
                if running:
                    of_users[namespace, job.created_by or UNKNOWN, name] += role.count * count
    largest = sorted(of_users, key=lambda series: (-of_users[series], series))
    for rank, (namespace, user, name) in enumerate(largest):
        label = user if rank < MAX_USER_SERIES else BEYOND
        counts["user_gpus_in_use", namespace, label, name] += of_users[namespace, user, name]
    return counts


@lru_cache(maxsize=1024)
def accelerators(shape: PodShape) -> tuple[tuple[str, int], ...]:
    return tuple(counted_accelerators(pod_resources.requests(shape.resources)))
