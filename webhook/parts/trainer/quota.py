"""TrainJobs for quotas and for Kueue: their existing pods, and the objects that Trainer creates for them.

The spec of a stored TrainJob is not cached. After the TrainJob's reservation has expired, only its existing pods are
counted, so a launcher that still waits for nodes is not counted.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.quota_charges import ONE, Charge
from webhook.api.quota_scopes import ObjectTraits
from webhook.cluster.contents import Group
from webhook.cluster.resource import ByNamespace
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.parts.trainer import kinds
from webhook.parts.trainer.resources import TRAIN_JOB_PODS, TRAIN_JOBS, TrainJobPod
from webhook.predict.other_jobs import OtherJobs

_REPLICATED_JOBS: Final = {LAUNCHER: kinds.LAUNCHER, WORKER: kinds.NODE}


@dataclass(eq=False)
class TrainPods:
    """The number of existing pods by TrainJob and replicated job."""

    made: Counter[tuple[str, str]]

    def of(self, name: str, role: str) -> int:
        return self.made.get((name, _REPLICATED_JOBS[role]), 0)

    def changed(self, old: TrainJobPod | None, new: TrainJobPod | None) -> None:
        if old is not None:
            self.made[_key(old)] -= 1
            if not self.made[_key(old)]:
                del self.made[_key(old)]
        if new is not None:
            self.made[_key(new)] += 1

    def copy(self) -> "TrainPods":
        return TrainPods(self.made.copy())


def _counted(pods: Mapping[ByNamespace, TrainJobPod]) -> TrainPods:
    return TrainPods(Counter(map(_key, pods.values())))


def _key(pod: TrainJobPod) -> tuple[str, str]:
    return pod.job, pod.replicated_job


@cache
def charges(jobs: int) -> tuple[Charge, ...]:
    """Charges for the objects of a TrainJob with this number of Jobs. Pods are not included."""
    numbers = {"count/trainjobs.trainer.kubeflow.org": 1, "count/jobsets.jobset.x-k8s.io": 1, "count/jobs.batch": jobs}
    for kind, number in (("services", 1), ("configmaps", 2), ("secrets", 1)):
        numbers |= {kind: number, f"count/{kind}": number}
    return (Charge(ObjectTraits(), {name: number * ONE for name, number in numbers.items()}),)


def made(ctx: Context) -> TrainPods | None:
    """The existing pods of TrainJobs; None if they are unknown."""
    pods = ctx.view.within(TRAIN_JOB_PODS, ctx.namespace)
    if pods is UNKNOWN:
        return None
    return pods.derived(_counted) if isinstance(pods, Group) else _counted(pods)


JOBS: Final = OtherJobs(
    kind=kinds.TRAIN_JOB,
    framework="trainer.kubeflow.org/trainjob",
    jobs=TRAIN_JOBS,
    pods=TRAIN_JOB_PODS,
    made=made,
    objects=charges,
)
