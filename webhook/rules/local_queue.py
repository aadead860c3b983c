"""The queue that a job names accepts jobs of the job's namespace.

Kueue suspends every job with the label `kueue.x-k8s.io/queue-name`. The job stays suspended if the queue does not exist
or is stopped, or if its ClusterQueue is stopped, inactive or not for this namespace. Only the Workload shows the
reason, and there is no Workload if Kueue does not manage the namespace (`managedJobsNamespaceSelector`). If Kueue does
not manage MPIJobs at all, the job starts at once, outside the quota. A label with a misspelt key such as
`kueue.x-k8s.io/queue`, an annotation, or a label of a pod template has no effect.

Kueue sends a job with `managedBy: kueue.x-k8s.io/multikueue` to another cluster. Such a job never starts if it has no
queue, or if its ClusterQueue has no admission check of MultiKueue.

A violation is a warning, because a queue may be created or resumed after the job. Nothing is reported if the queues
cannot be read.
"""

from collections.abc import Iterator

from webhook.api import names
from webhook.api.kueue import QUEUE_NAME, queue_names
from webhook.api.mpijob import MULTIKUEUE, MPIJob
from webhook.cluster.resources.admission_checks import ADMISSION_CHECKS, AdmissionCheck
from webhook.cluster.resources.local_queues import LOCAL_QUEUES
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import WarningRuleSettings
from webhook.predict.kueue import queues
from webhook.predict.kueue.managed import Unmanaged, framework, is_there, unmanaged
from webhook.rules import CauseReason, Violation, rule, shortened
from webhook.rules.limits import MAX_OBJECT_NAME_CHARACTERS

LABEL = f"metadata.labels[{QUEUE_NAME}]"
MANAGED_BY = "spec.runPolicy.managedBy"


class Settings(WarningRuleSettings):
    """The action for a queue that accepts no jobs."""


@rule("local-queue", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    name = job.labels.get(QUEUE_NAME)
    if job.run_policy.managed_by == MULTIKUEUE:
        yield from _sent_elsewhere(name or "", ctx)
    reason = unmanaged(ctx.view, ctx.namespace, framework(job))
    if reason is not Unmanaged.FRAMEWORK and not ctx.view.not_served(LOCAL_QUEUES):
        yield from _misplaced(job)
    if not name:
        return
    if reason is Unmanaged.FRAMEWORK:
        kind = job.kind or "MPIJob"
        message = f"Kueue does not manage {kind}s here (its configuration lacks {framework(job)})"
        yield Violation(LABEL, message, fix="Remove it, or enable them.")
    elif reason is Unmanaged.NAMESPACE:
        message = "Kueue does not manage this namespace (the job would wait for ever)"
        yield Violation(LABEL, message, fix="Remove it.", reason=CauseReason.FORBIDDEN)
    elif fault := queues.fault(ctx.view, ctx.namespace, name):
        fix = queues.advice(ctx.view, ctx.namespace, name)
        yield Violation(LABEL, fault.in_words(name), fix, CauseReason.NOT_SUPPORTED)
    elif not names.label_value_problem(name) and (problem := names.dns_1123_subdomain_problem(name)):
        fix = names.advice(name, names.dns_1123_subdomain_problem)
        yield Violation(LABEL, f'"{shortened(name, MAX_OBJECT_NAME_CHARACTERS)}" {problem.partition(";")[0]}', fix)


def _misplaced(job: MPIJob) -> Iterator[Violation]:
    queue = job.labels.get(QUEUE_NAME)
    places = [("metadata", job)] + [(f"{path}.template.metadata", spec.template) for _, path, spec in job.replicas]
    for path, owner in places:
        for kind, entries in (("labels", owner.labels), ("annotations", owner.annotations)):
            for key in queue_names(entries):
                if entries[key] != queue and (owner is job or "/" in key):
                    of_job = owner is job and kind == "labels"
                    fix = f"Rename it to {QUEUE_NAME}." if of_job else f"Move it to {LABEL}."
                    yield Violation(f"{path}.{kind}[{key}]", "has no effect", fix)


def _sent_elsewhere(name: str, ctx: Context) -> Iterator[Violation]:
    queue = queues.of_job(ctx.view, ctx.namespace, name)
    if queue is UNKNOWN or not is_there(ctx.view):
        return
    if not queue:
        fix = f"Remove it, or add {QUEUE_NAME}."
        yield Violation(MANAGED_BY, "MultiKueue needs a queue (a label)", fix=fix, reason=CauseReason.REQUIRED)
    elif (behind := queues.cluster_queue(ctx.view, ctx.namespace, queue)) is not None and not any(
        _may_send(check, ctx) for check in behind.checks
    ):
        name = shortened(behind.name, MAX_OBJECT_NAME_CHARACTERS)
        fault = f"the queue (ClusterQueue {name}) has no MultiKueue check"
        yield Violation(MANAGED_BY, fault, fix="Remove it, or use another queue.")


def _may_send(check: str, ctx: Context) -> bool:
    """True also for a missing AdmissionCheck, because a missing check only makes the queue inactive."""
    admission_check = ctx.view.get(ADMISSION_CHECKS, check)
    return not isinstance(admission_check, AdmissionCheck) or admission_check.controller == MULTIKUEUE
