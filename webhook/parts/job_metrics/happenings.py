"""What the jobs of the cluster say in numbers: what happens to them, and how many there are now. Pure.

Every replica sees every job, so each counts all of them: whoever reads takes the greatest number of the replicas, and
never the sum. What happened before a replica has seen all jobs for the first time is not counted: another has counted
it, and a counter begins at 0 whenever a process does.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from webhook.api import pod_resources
from webhook.api.quota_charges import PodShape
from webhook.api.resources import counted_accelerators
from webhook.cluster.job_lives import JobLife, Phase
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.mpijobs import MPIJobRecord
from webhook.cluster.view import ClusterView
from webhook.predict.devices import by_claims
from webhook.server.namespace_labels import Labels


class Counted(NamedTuple):
    """Something that happened to a job: one more of a counter, or some seconds for a histogram."""

    metric: str
    namespace: str
    seconds: float | None = None
    reason: tuple[str, ...] = ()
    """Why it failed."""


class Changes:
    """What happens, out of how a job was and how it is now."""

    def __init__(self, jobs: Iterable[JobLife] = ()) -> None:
        """`jobs` are those that are there at the beginning, of which nothing is counted."""
        # After a suspension a job does not wait for the first time.
        self._ran = {job.uid for job in jobs if job.phase is not Phase.QUEUED or (job.suspended and job.started)}

    def of(self, old: JobLife | None, new: JobLife | None) -> list[Counted]:
        """What to count; None is a job that is not there."""
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
    """How many jobs have neither ended nor are being deleted, and what they ask for, by metric and labels.

    `view` has the templates of claims.
    """
    found = Counter[tuple[str, ...]]()
    for job in jobs:
        if job.over or job.leaving:
            continue
        namespace = namespaces.bounded(job.namespace)
        running = job.phase is Phase.RUNNING
        found["running" if running else "queued", namespace] += 1
        record = pods.get((job.namespace, job.name))
        for each in record.pods if record is not None and record.uid == job.uid else ():
            claimed = by_claims(each.shape.device_claims, job.namespace, view)
            for name, count in (*accelerators(each.shape), *claimed):
                found["gpus_requested", namespace, name] += each.count * count
                found["gpus_in_use", namespace, name] += each.count * count if running else 0
    return found


@lru_cache(maxsize=1024)
def accelerators(shape: PodShape) -> tuple[tuple[str, int], ...]:
    """The accelerators that a pod asks for as resources."""
    return tuple(counted_accelerators(pod_resources.requests(shape.resources)))
