"""TrainJobs in the ledger of quotas: under which names they are there, and which of their pods exist.

Of a stored TrainJob nothing is known but its name, so it is promised nothing beyond its reservation: pods that are made
later, such as a launcher that waits long for its nodes, do not count until then.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from webhook.api import trainer
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob
from webhook.cluster.contents import Group
from webhook.cluster.resource import ByNamespace
from webhook.cluster.train_jobs import TRAIN_JOB_PODS, TrainJobPod
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context

# No MPIJob has a name with a slash.
_PREFIX: Final = f"{trainer.TRAIN_JOB}/"
_REPLICATED_JOBS: Final = {LAUNCHER: trainer.LAUNCHER, WORKER: trainer.NODE}


def is_train_job(job: MPIJob) -> bool:
    """Whether it stands for a TrainJob."""
    return job.kind == trainer.TRAIN_JOB


def holder(job: MPIJob) -> str:
    """The name under which the ledger has it."""
    return f"{_PREFIX}{job.metadata.name}" if is_train_job(job) else job.metadata.name


def train_job(holder: str) -> str:
    """The name of the TrainJob that the ledger has under this name; empty for that of an MPIJob."""
    return holder.removeprefix(_PREFIX) if holder.startswith(_PREFIX) else ""


@dataclass(eq=False)
class TrainPods:
    """How many pods of TrainJobs exist, by TrainJob and replicated job."""

    made: Counter[tuple[str, str]]

    def of(self, name: str, role: str) -> int:
        """How many of a role of the TrainJob."""
        return self.made.get((name, _REPLICATED_JOBS[role]), 0)

    def changed(self, old: TrainJobPod | None, new: TrainJobPod | None) -> None:
        """A pod was added, changed or removed."""
        if old is not None:
            self.made[_key(old)] -= 1
            if not self.made[_key(old)]:
                del self.made[_key(old)]
        if new is not None:
            self.made[_key(new)] += 1

    def copy(self) -> "TrainPods":
        """The same, for the pods as they are now."""
        return TrainPods(self.made.copy())


def pods_of_train_jobs(ctx: Context) -> TrainPods | None:
    """Those of the namespace in question; None for unknown."""
    pods = ctx.view.within(TRAIN_JOB_PODS, ctx.namespace)
    if pods is UNKNOWN:
        return None
    return pods.derived(_counted) if isinstance(pods, Group) else _counted(pods)


def _counted(pods: Mapping[ByNamespace, TrainJobPod]) -> TrainPods:
    return TrainPods(Counter(map(_key, pods.values())))


def _key(pod: TrainJobPod) -> tuple[str, str]:
    return pod.job, pod.replicated_job
