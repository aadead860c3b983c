"""What admitted jobs will still use: the charges of their pods that do not exist yet.

The `used` of a quota already includes existing pods. The sums over a namespace's jobs and pods are updated with each
change, so the cost of a review does not depend on the number of jobs and pods.
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
    """The number of existing pods, by the key of `_owner`."""

    def of(self, job: str, uid: str, role: str) -> int:
        """The number of the job's existing pods of a role."""
        return self.get((role, uid, job) if role == WORKER else (role, "", job), 0)


@dataclass(eq=False)
class Outstanding:
    """What the active jobs of a namespace will still use. Suspended jobs are left out."""

    made: Made
    """The number of existing pods."""
    missing: Counter[PodShape] = field(default_factory=Counter)
    """The number of pods still to be created, by shape."""
    running: Counter[tuple[PodShape, ...]] = field(default_factory=Counter)
    """The number of running jobs, by the shapes of their pods."""

    def running_but(self, job: MPIJobRecord | None) -> Counter[tuple[PodShape, ...]]:
        """`running` without this job."""
        running = self.running.copy()
        if job is not None and not job.suspended:
            _add(running, _shapes(job), -1)
        return running

    def of(self, job: MPIJobRecord) -> Iterator[tuple[PodsRecord, int]]:
        """(pods, number of missing pods) for each role of the job."""
        for pods in () if job.suspended else job.pods:
            yield pods, max(pods.count - self.made.of(job.name, job.uid, pods.role), 0)

    def changed(self, old: MPIJobRecord | None, new: MPIJobRecord | None) -> None:
        """A job was added, changed or removed, or has ended."""
        for job, step in ((old, -1), (new, 1)):
            if job is not None and not job.suspended:
                for pods, missing in self.of(job):
                    _add(self.missing, pods.shape, step * missing)
                _add(self.running, _shapes(job), step)

    def pods_changed(self, job: MPIJobRecord, role: str, before: int, after: int) -> None:
        """The number of pods of this role of the job has changed."""
        for pods in () if job.suspended else job.pods:
            if pods.role == role:
                _add(self.missing, pods.shape, max(pods.count - after, 0) - max(pods.count - before, 0))

    def copy(self, made: Made | None = None) -> "Outstanding":
        """A copy that uses `made` from now on."""
        return Outstanding(self.made if made is None else made, self.missing.copy(), self.running.copy())


@dataclass(eq=False)
class PodCounts:
    """The number of existing pods and of outstanding pods, as `pod_counts` creates it."""

    made: Made
    _jobs: Jobs | None = None
    _outstanding: Outstanding | None = None

    def outstanding(self, jobs: Jobs) -> Outstanding:
        """What the jobs will still use. The result listens to changes of `jobs` before it is stored, as in
        `Group.derived`, so it misses no change."""
        if self._outstanding is None or self._jobs is not jobs:
            outstanding = uncounted(lambda: _outstanding(jobs, self.made))
            jobs.listen(outstanding)
            self._jobs, self._outstanding = jobs, outstanding
        return self._outstanding

    def changed(self, old: Owned | None, new: Owned | None) -> None:
        """A pod was added, changed or removed."""
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
    """The number of pods by owner."""
    return PodCounts(Made(key for key in map(_owner, pods.values()) if key is not None))


def without_pods(jobs: Jobs) -> Outstanding:
    """What the jobs will still use in a namespace without pods."""
    return _outstanding(jobs, Made())


def promised(
    stored: Outstanding,
    reservations: Iterable[Reservation],
    *,
    job: Callable[[str], MPIJobRecord | None],
    but: str,
    charges: Callable[[PodShape], tuple[Charge, ...]],
    others: Mapping[str, PodsMade] = MappingProxyType({}),
) -> list[Alternatives]:
    """What the jobs of a namespace will still use: stored jobs, and admitted jobs that so far have only a reservation.

    For one name there may be a stored job, and reservations of later reviews that admitted an update or a new job of
    this name. Only one of them will be the job in the end, so they are alternatives. The job named `but` is left out.
    A suspended job uses only its reservation. The caller leaves out the reservations of jobs that have ended.

    `job` finds a stored job by name. `charges` returns the charges of a stored job's pod. `others` has the pods of
    other kinds of jobs, whose reservations are otherwise left out.
    """
    missing = stored.missing.copy()
    if (own := job(but)) is not None:
        for pods, count in stored.of(own):
            missing[pods.shape] -= count
    reserved: defaultdict[str, Alternatives] = defaultdict(list)
    for each in reservations:
        other = other_jobs.of_holder(each.name)
        if other and other[0].kind not in others:
            continue
        twin = job(each.name)
        stored_already = twin is not None and twin.uid == each.uid
        if each.name == but or (stored_already and each.new):  # the stored job is the reserved job
            continue
        if twin is not None and each.name not in reserved:
            for pods, count in stored.of(twin):
                missing[pods.shape] -= count
            as_stored = ((count, charge) for pods, count in stored.of(twin) for charge in charges(pods.shape))
            reserved[each.name].append(list(as_stored))
        made = partial(others[other[0].kind].of, other[1]) if other else partial(stored.made.of, each.name, each.uid)
        reserved[each.name].append(_reserved(each, made, objects=not stored_already))
    certain = [load for alternatives in reserved.values() if len(alternatives) == 1 for load in alternatives[0]]
    certain += ((count, charge) for shape, count in missing.items() if count > 0 for charge in charges(shape))
    return [[certain], *(alternatives for alternatives in reserved.values() if len(alternatives) > 1)]


def _reserved(reservation: Reservation, made: Callable[[str], int], *, objects: bool) -> list[Load]:
    """The pods of a reservation that do not exist yet. `made` returns the number of existing pods of a role.

    With `objects`, for a job that is not stored yet, the result includes the reserved objects other than pods.
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

    The operator creates workers, so their owner is the job. Kubernetes' Job controller creates the launcher, so only
    the name of that Job shows the MPIJob; the uid is then empty.
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
    """Adds to a counter, and removes zeros."""
    tally[key] += count
    if not tally[key]:
        del tally[key]
