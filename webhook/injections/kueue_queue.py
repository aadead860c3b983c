"""If Kueue manages the namespace, a job waits in a queue and starts when there is room.

A job that names no queue gets the label `kueue.x-k8s.io/queue-name` and `suspend: true`. Kueue resumes the job later.
The job's annotation `training.openshift.io/queue` selects the queue, else the policy's `queue`, else the LocalQueue
`default` of the namespace, else the namespace's only LocalQueue. An empty annotation means no queue.

A job must not stay suspended for ever. Therefore nothing is injected unless it is certain that Kueue manages MPIJobs in
the namespace, that the queue accepts jobs now, and that the job's PriorityClass exists: without the class Kueue ignores
the job. If a queue cannot be used, a warning gives the reason.

A user who writes `suspend: true` wants to start the job later, but Kueue resumes jobs in a queue. Such a job is put
into a queue only if the annotation names a queue, or if Kueue suspends every job (because of a LocalQueue `default` or
of `manageJobsWithoutQueueName`). `suspend: false` does not keep a job out of a queue: it is the API server's default
for every job, and Kueue ignores it.

A job that names a queue of Volcano (`spec.runPolicy.schedulingPolicy.queue`, or Volcano's annotation) is not put into a
queue of Kueue, unless `training.openshift.io/queue` names one. If Volcano is not installed, the name is read as the
name of a LocalQueue. The job gets the label of this LocalQueue even if the queue accepts no jobs: the job then waits.
If this LocalQueue does not exist, the job is put into the queue of jobs that name none, and a warning names the missing
queue.

An update with another value of `training.openshift.io/queue` moves a waiting job to the new queue if that queue can be
used. Kueue does not allow a running job to change its queue. It does not allow a waiting job to leave all queues
either. In both cases delete the job and submit it again.

With `required`, a job without a Kueue queue is rejected if Kueue manages the namespace and the operator of this cluster
runs the job. This includes updates, jobs that opt out of a queue, and jobs in a queue of Volcano.

Kueue starts a job without waiting if the job's owner is another MPIJob that Kueue has admitted. While it is unknown
whether Kueue manages the namespace, no job is rejected. This injection has no effect on TrainJobs, Jobs and Pods of
users: Kueue's own configuration decides whether they wait.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from webhook.api import annotations, names
from webhook.api.kueue import PRIORITY_CLASS, QUEUE_NAME
from webhook.api.mpijob import MPIJob
from webhook.cluster.resources.local_queues import LOCAL_QUEUES, LocalQueue
from webhook.cluster.resources.volcano_queues import VOLCANO_QUEUES
from webhook.cluster.view import UNKNOWN
from webhook.injections import Caution, Note, injection
from webhook.kit.context import Context
from webhook.kit.forms import ComesBack, Form, a_text, equal
from webhook.kit.patch import PatchBuilder
from webhook.kit.settings import InjectionSettings, NameInLabel
from webhook.predict import volcano
from webhook.predict.kueue import priority, queues
from webhook.predict.kueue.managed import Unmanaged, manages, suspends_all, unmanaged

LABEL: Final = ("metadata", "labels", QUEUE_NAME)
WORKLOAD_CLASS: Final = ("metadata", "labels", PRIORITY_CLASS)
SUSPEND: Final = ("spec", "runPolicy", "suspend")
_UNREACHABLE: Final = {
    Unmanaged.FRAMEWORK: "Kueue does not manage MPIJobs here",
    Unmanaged.NAMESPACE: "Kueue does not manage this namespace",
    UNKNOWN: "it is not known whether Kueue manages this namespace",
}
_NO_QUEUE: Final = "a waiting job needs a queue. Delete the job and submit it again."


class Settings(InjectionSettings):
    """The queue."""

    queue: NameInLabel = Field(
        "",
        description="The LocalQueue of jobs that name none; empty for `default`, or the namespace's only queue.",
    )


FORMS: Final = (
    Form(LABEL, a_text, ComesBack.ALWAYS),
    Form(SUSPEND, equal(True), ComesBack.WITH_OTHERS, default=False),
)


def _without_queue(job: MPIJob, settings: Settings, ctx: Context) -> str:
    """The fix for a job without a queue in a namespace that Kueue manages; empty for any other job."""
    if job.labels.get(QUEUE_NAME) or not job.managed_here or manages(ctx.view, ctx.namespace) is not True:
        return ""
    name = settings.queue or queues.of_namespace(ctx.view, ctx.namespace)
    return f"Set it to {name}." if name else "Set it to a LocalQueue of the namespace: kubectl get localqueues."


@injection("kueue-queue", Settings, since="0.1", forms=FORMS, unmet=_without_queue)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    requested = job.annotations.get(annotations.QUEUE)
    shown = annotations.mention(annotations.QUEUE, requested) if requested else ""
    if QUEUE_NAME in job.labels:
        if requested and job.labels[QUEUE_NAME] != requested:
            yield Caution(f"{shown} has no effect on a job with the label {QUEUE_NAME}")
        return
    name = _by_default(job, settings, ctx) if requested is None else requested
    invalid = f"{shown} is not a valid name of a queue" if requested and names.label_value_problem(requested) else ""
    if ctx.old is not None and (current := ctx.old.labels.get(QUEUE_NAME)):
        if not ctx.old.suspended:
            yield from _stay(current, requested, patch)
        else:
            reason = invalid or (_obstacle(job, name, ctx, patch) if name not in {"", current} else "")
            yield from _move(current, name, _NO_QUEUE if requested == "" else reason, patch)
        return
    if not name:
        return
    # Kueue itself puts the job into this queue. The rule `local-queue` reports a queue that cannot be used.
    by_kueue = name == queues.DEFAULT and not (requested or settings.queue)
    reason = invalid or _obstacle(job, name, ctx, patch)
    if job.suspended and not (reason or requested or by_kueue or suspends_all(ctx.view, ctx.namespace)):
        reason = "spec.runPolicy.suspend is true. Remove it."
    field, named = volcano.queue_of(job)
    queue = ctx.view.get(LOCAL_QUEUES, (ctx.namespace, name))
    # In a stopped queue the job waits. Without a queue the job would start outside the quota.
    waits = requested is None and name == named and not job.suspended and isinstance(queue, LocalQueue)
    if reason and not waits:
        if not by_kueue:
            yield Caution(invalid or f"not in queue {name}: {reason}")
    elif patch.add(LABEL, name):
        patch.add(SUSPEND, value=True, over=False)
        # With a reason, a rule reports that the job will not start.
        starts = "" if reason else ", which starts the job when there is room"
        yield Note(f"put into queue {name}{starts}", brief=name)
        if named and requested is None and named != name:
            yield Caution(f"in queue {name}: there is no queue {annotations.quoted(named)} ({field})")


def _by_default(job: MPIJob, settings: Settings, ctx: Context) -> str:
    """The queue of a job without the annotation; empty if the job gets no queue."""
    if _unreachable(job, ctx):
        return ""
    named = volcano.queue_of(job)[1]
    if named and not ctx.view.not_served(VOLCANO_QUEUES):
        return ""
    usual = settings.queue or queues.of_namespace(ctx.view, ctx.namespace)
    if not named or names.label_value_problem(named):
        return usual
    queue = ctx.view.get(LOCAL_QUEUES, (ctx.namespace, named))
    return named if isinstance(queue, LocalQueue) or not usual else usual


def _stay(current: str, requested: str | None, patch: PatchBuilder) -> Iterator[str]:
    """Keep the queue of a running job: Kueue rejects another queue (`validateUpdateForQueueName`)."""
    if requested is not None and requested != current:
        shown = annotations.quoted(requested)
        yield Caution(f"stays in queue {current}, not {shown}: to move a running job, delete it and submit it again")
    patch.add(LABEL, current)


def _move(current: str, name: str, reason: str, patch: PatchBuilder) -> Iterator[str]:
    """Move a waiting job to the queue `name`. A `reason` against the move is reported, and the job keeps its queue."""
    if reason:
        yield Caution(f"stays in queue {current}: {reason}")
    queue = current if reason or not name else name
    if patch.add(LABEL, queue):
        patch.add(SUSPEND, value=True, over=False)
        if queue != current:
            yield Note(f"moved to queue {queue}, which starts the job when there is room", brief=queue)


def _unreachable(job: MPIJob, ctx: Context) -> str:
    """The reason why no queue can accept the job; empty if a queue may accept it."""
    if not job.managed_here:
        return "spec.runPolicy.managedBy names another controller"
    reason = unmanaged(ctx.view, ctx.namespace)
    return "" if reason is None else _UNREACHABLE[reason]


def _obstacle(job: MPIJob, name: str, ctx: Context, patch: PatchBuilder) -> str:
    """The reason why Kueue might never resume the job in this queue; empty if it certainly resumes the job."""
    if reason := _unreachable(job, ctx):
        return reason
    if fault := queues.fault(ctx.view, ctx.namespace, name):
        return f"{fault.in_words(name)}. {queues.advice(ctx.view, ctx.namespace, name)}"
    if names.label_value_problem(name) or not queues.takes_jobs(ctx.view, ctx.namespace, name):
        return "it is not known whether it takes jobs"
    kind, of_class, exists = "WorkloadPriorityClass", patch.get(WORKLOAD_CLASS), priority.has_workload_class
    if not of_class:
        _, of_class = next(priority.priority_classes(job), ("", ""))
        kind, exists = "PriorityClass", priority.has_class
    if not of_class or (existence := exists(ctx.view, of_class)) is True:
        return ""
    shown = annotations.mention(f"its {kind}", of_class)
    return f"it is not known whether {shown} exists" if existence is UNKNOWN else f"{shown} does not exist"
