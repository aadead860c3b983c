"""The quota use of pods that do not exist yet, although their jobs are admitted. A quota's `used` already includes
existing pods.

The sums over a namespace's jobs and pods are updated with each change, so the cost of a review does not depend on the
number of jobs and pods.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.quota_charges import Charge, PodShape
from webhook.cluster.contents import Group
from webhook.cluster.owned import Owned
from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.jobs import LAUNCHER_SUFFIX
from webhook.cluster.resources.mpijobs import MPIJobRecord, PodsRecord
from webhook.cluster.resources.reservations import Reservation
from webhook.predict import other_jobs
from webhook.predict.other_jobs import PodsMade
from webhook.predict.quota.fit import Alternatives, Load
from webhook.work_limit import uncounted

Jobs = Group[ByNamespace, MPIJobRecord]
Pods = Group[ByNamespace, Owned]


class Made(Counter[tuple[str, str, str]]):
    """The number of existing pods, by the key that `_owner` returns."""

    def of(self, job: str, uid: str, role: str) -> int:
        return self.get((role, uid, job) if role == WORKER else (role, "", job), 0)


@dataclass(eq=False)
class Outstanding:
    """The pods of a namespace's active jobs that do not exist yet (missing pods). Suspended jobs are left out."""

    made: Made
    missing: Counter[PodShape] = field(default_factory=Counter)
    """The number of missing pods, by shape."""
    running: Counter[tuple[PodShape, ...]] = field(default_factory=Counter)
    """The number of active jobs, by the shapes of their pods."""

    def running_without(self, job: MPIJobRecord | None) -> Counter[tuple[PodShape, ...]]:
        running = self.running.copy()
        if job is not None and not job.suspended:
            _add(running, _shapes(job), -1)
        return running

    def of(self, job: MPIJobRecord) -> Iterator[tuple[PodsRecord, int]]:
        """(pods, number of missing pods) for each role of the job."""
        for pods in () if job.suspended else job.pods:
            yield pods, max(pods.count - self.made.of(job.name, job.uid, pods.role), 0)

    def changed(self, old: MPIJobRecord | None, new: MPIJobRecord | None) -> None:
        for job, step in ((old, -1), (new, 1)):
            if job is not None and not job.suspended:
                for pods, missing in self.of(job):
                    _add(self.missing, pods.shape, step * missing)
                _add(self.running, _shapes(job), step)

    def pods_changed(self, job: MPIJobRecord, role: str, before: int, after: int) -> None:
        """Updates the sums after the number of the job's pods of this role has changed."""
        for pods in () if job.suspended else job.pods:
            if pods.role == role:
                _add(self.missing, pods.shape, max(pods.count - after, 0) - max(pods.count - before, 0))

    def copy(self, made: Made | None = None) -> "Outstanding":
        return Outstanding(self.made if made is None else made, self.missing.copy(), self.running.copy())


@dataclass(eq=False)
class PodCounts:
    """The number of existing pods and of missing pods in a namespace."""

    made: Made
    _jobs: Jobs | None = None
    _outstanding: Outstanding | None = None

    def outstanding(self, jobs: Jobs) -> Outstanding:
        # The result listens to changes of `jobs` before it is stored here, so it misses no change.
        if self._outstanding is None or self._jobs is not jobs:
            outstanding = uncounted(lambda: _outstanding(jobs, self.made))
            jobs.listen(outstanding)
            self._jobs, self._outstanding = jobs, outstanding
        return self._outstanding

    def changed(self, old: Owned | None, new: Owned | None) -> None:
        for pod, step in ((old, -1), (new, 1)):
            if pod is not None and (key := _owner(pod)) is not None:
                before = self.made[key]
                _add(self.made, key, step)
                role, uid, name = key
                job = None if self._jobs is None else self._jobs.get((pod.namespace, name))
                if self._outstanding is not None and job is not None and uid in {"", job.uid}:
                    self._outstanding.pods_changed(job, role, before, before + step)

    def copy(self) -> "PodCounts":
        made = self.made.copy()
        if self._jobs is None or self._outstanding is None:
            return PodCounts(made)
        outstanding = self._outstanding.copy(made)
        self._jobs.listen(outstanding)
        return PodCounts(made, self._jobs, outstanding)


def pod_counts(pods: Pods) -> PodCounts:
    return PodCounts(Made(key for key in map(_owner, pods.values()) if key is not None))


def without_pods(jobs: Jobs) -> Outstanding:
    return _outstanding(jobs, Made())


def promised(
    stored: Outstanding,
    reservations: Iterable[Reservation],
    *,
    job: Callable[[str], MPIJobRecord | None],
    without: str,
    charges: Callable[[PodShape], tuple[Charge, ...]],
    others: Mapping[str, PodsMade] = MappingProxyType({}),
) -> list[Alternatives]:
    """The future quota use of a namespace's jobs: stored jobs, and admitted jobs that have only a reservation.

    One name may belong to a stored job, to admitted updates of this job, and to an admitted new job. Only one of them
    will exist in the end, so their quota uses are alternatives. The result excludes the job named `without`. For a
    suspended job, only its reservation counts. The caller excludes reservations of jobs that have ended.

    `job` finds a stored job by name. `charges` returns the quota use of a stored job's pod. `others` has the existing
    pods of jobs that are not MPIJobs, by kind. The result excludes reservations of kinds that are not in `others`.
    """
    missing = stored.missing.copy()
    if (own := job(without)) is not None:
        for pods, count in stored.of(own):
            missing[pods.shape] -= count
    reserved: defaultdict[str, Alternatives] = defaultdict(list)
    for reservation in reservations:
        name, uid = reservation.name, reservation.uid
        other = other_jobs.of_holder(name)
        if other and other[0].kind not in others:
            continue
        namesake = job(name)
        stored_already = namesake is not None and namesake.uid == uid
        if name == without or (stored_already and reservation.new):  # the stored job is the reserved job
            continue
        if namesake is not None and name not in reserved:
            loads: list[Load] = []
            for pods, count in stored.of(namesake):
                missing[pods.shape] -= count
                loads += ((count, charge) for charge in charges(pods.shape))
            reserved[name].append(loads)
        made = partial(others[other[0].kind].of, other[1]) if other else partial(stored.made.of, name, uid)
        reserved[name].append(_reserved(reservation, made, objects=not stored_already))
    certain = [load for alternatives in reserved.values() if len(alternatives) == 1 for load in alternatives[0]]
    certain += ((count, charge) for shape, count in missing.items() if count > 0 for charge in charges(shape))
    return [[certain], *(alternatives for alternatives in reserved.values() if len(alternatives) > 1)]


def _reserved(reservation: Reservation, made: Callable[[str], int], *, objects: bool) -> list[Load]:
    """The quota use of the missing pods. With `objects`, it includes the job's other objects if no pod exists yet.

    `made` returns the number of a role's existing pods.
    """
    loads: list[Load] = []
    exists = 0
    for pods in reservation.pods:
        existing = made(pods.role)
        exists += existing
        if existing < pods.count:
            loads += ((pods.count - existing, charge) for charge in pods.charges)
    if objects and not exists:
        loads += ((1, charge) for charge in reservation.objects)
    return loads


def _outstanding(jobs: Jobs, made: Made) -> Outstanding:
    result = Outstanding(made)
    for job in jobs.values():
        result.changed(None, job)
    return result


def _owner(pod: Owned) -> tuple[str, str, str] | None:
    """(role, uid, name) of the job that owns a pod; None if no job owns it.

    A worker's owner is the MPIJob. The launcher's owner is a Kubernetes Job, whose name contains the MPIJob's name; the
    uid is then empty.
    """
    owner = pod.owner
    if owner is None:
        return None
    if owner.kind == "MPIJob":
        return WORKER, owner.uid, owner.name
    name = owner.name.removesuffix(LAUNCHER_SUFFIX)
    return None if name == owner.name else (LAUNCHER, "", name)


def _shapes(job: MPIJobRecord) -> tuple[PodShape, ...]:
    return tuple(pods.shape for pods in job.pods if pods.count)


def _add(tally: Counter[Any], key: Any, count: int) -> None:
    tally[key] += count
    if not tally[key]:
        del tally[key]
