"""The names that the operator needs for a job's own objects are free.

For a job `train`, the operator creates a Service `train`, a ConfigMap `train-config`, a Job `train-launcher`, and Pods
`train-worker-0` and so on. If an object of another owner has one of these names, the operator reports
`ErrResourceExists`, creates no pods, and retries for ever.

The violation is a warning if the object is being deleted, or belongs to a former job of the same name. A taken name of
a worker is a warning for a suspended job, because the operator creates workers only when the job is resumed. Pods
without the label `training.kubeflow.org/job-name`, such as pods of a StatefulSet `train-worker`, are checked as soon as
the service has listed them after its start. The Secret `train-ssh` is not checked, because this service may not read
Secrets.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webhook.api.mpijob import GROUP, MPIJob
from webhook.cluster.owned import Owned
from webhook.cluster.resource import ByNamespace, Resource
from webhook.cluster.resources.config_maps import CONFIG_MAPS
from webhook.cluster.resources.jobs import JOBS, LAUNCHER_SUFFIX
from webhook.cluster.resources.other_pods import OTHER_PODS
from webhook.cluster.resources.pods import PODS
from webhook.cluster.resources.services import SERVICES
from webhook.cluster.view import UNKNOWN, Answer
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.rules import CauseReason, Violation, rule

# mpi-operator `configSuffix` and `workerSuffix`
CONFIG_SUFFIX = "-config"
WORKER_INFIX = "-worker-"
NAME = "metadata.name"
_CHILDREN: Sequence[tuple[Resource[Any, Any], str]]
_CHILDREN = ((SERVICES, ""), (CONFIG_MAPS, CONFIG_SUFFIX), (JOBS, LAUNCHER_SUFFIX))


class Settings(RuleSettings):
    """No settings except the action: the operator decides the names."""


@rule("child-names", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    name, namespace = job.metadata.name, ctx.namespace
    if not name or not job.managed_here:
        return
    for resource, suffix in _CHILDREN:
        child = ctx.view.get(resource, (namespace, name + suffix))
        if not isinstance(child, Answer):
            yield from _taken(job, resource.kind, child)
    for pods in (ctx.view.within(PODS, namespace), ctx.view.within(OTHER_PODS, namespace)):
        for pod in () if pods is UNKNOWN else _workers(job, namespace, pods):
            if violation := next(_taken(job, "Pod", pod, later=job.suspended), None):
                yield violation
                return


def _workers(job: MPIJob, namespace: str, pods: Mapping[ByNamespace, Owned]) -> Iterator[Owned]:
    """The pods that have the names of the job's workers. `pods` has only pods of the namespace."""
    prefix = job.metadata.name + WORKER_INFIX
    if job.workers <= len(pods):
        keys = ((namespace, f"{prefix}{index}") for index in range(job.workers))
        yield from (pods[key] for key in keys if key in pods)
        return
    for pod in pods.values():
        index = pod.name.removeprefix(prefix)
        if index != pod.name and index.isdecimal() and str(int(index)) == index and int(index) < job.workers:
            yield pod


def _taken(job: MPIJob, kind: str, child: Owned, *, later: bool = False) -> Iterator[Violation]:
    """`later` is True if the operator does not need the name yet."""
    owner = child.owner
    if owner is not None and owner.uid and owner.uid == job.metadata.uid:
        return
    former = owner is not None and (owner.group, owner.kind, owner.name) == (GROUP, "MPIJob", job.metadata.name)
    if child.deleted or former:
        whose = "is still being deleted" if child.deleted else "belongs to a former job of this name"
        fix = "The job starts when it is gone."
        yield Violation(NAME, f'{kind} "{child.name}" {whose}', fix=fix, reason=CauseReason.FORBIDDEN, advisory=True)
        return
    whose = f"belongs to {owner.kind} {owner.name}" if owner is not None else "is not the job's"
    yield Violation(
        NAME,
        f'{kind} "{child.name}" exists and {whose}, so the operator could never start the job',
        fix=f"Rename the job, or delete that {kind} if it is not needed.",
        reason=CauseReason.FORBIDDEN,
        advisory=later,
    )
