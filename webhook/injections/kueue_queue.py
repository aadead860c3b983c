"""If Kueue manages the namespace, a job waits in a queue and starts when there is room.

A job that names no queue gets the label `kueue.x-k8s.io/queue-name` and `suspend: true`, together; Kueue resumes it.
The queue is the one that the job's annotation `training.openshift.io/queue` names, else the policy's `queue`, else the
LocalQueue `default` of the namespace, else the namespace's only LocalQueue. An empty annotation means no queue.

No job stays suspended for ever. Nothing is injected unless it is certain that Kueue manages MPIJobs in the namespace,
that the queue takes jobs now, and that the PriorityClass that the job names exists: without that class Kueue ignores
the job. If a queue cannot be used, a warning says why.

A user who writes `suspend: true` wants to start the job later: it is put into a queue only if the annotation names one,
or if Kueue suspends every job (a LocalQueue `default`, `manageJobsWithoutQueueName`), because Kueue resumes jobs in a
queue. `suspend: false` is the API server's default for every job, and Kueue ignores it too.

A job that names a queue of Volcano (`spec.runPolicy.schedulingPolicy.queue`, or Volcano's annotation) stays out of
Kueue's, unless the annotation names one. Where Volcano is not installed it names a LocalQueue. If that does not exist,
the job is put into the usual queue, and a warning says so.

An update with another annotation moves a waiting job, and leaves it where it is if that queue cannot be used. A running
job stays in its queue, and a waiting one stays in some queue, because Kueue rejects all other changes: delete the job
and submit it again.

With `required`, a job without a Kueue queue is rejected if Kueue manages the namespace and the operator of this cluster
runs the job. That includes updates, jobs that opt out of a queue, and jobs in one of Volcano's.

Not guaranteed: Kueue starts a job without waiting if its owner is another MPIJob that Kueue has admitted. While it is
unknown whether Kueue manages the namespace, no job is rejected. Kueue's own configuration decides about TrainJobs, Jobs
and Pods of users.
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
_OUT_OF_REACH: Final = {
    Unmanaged.FRAMEWORK: "Kueue does not manage MPIJobs here",
    Unmanaged.NAMESPACE: "Kueue does not manage this namespace",
    UNKNOWN: "whether Kueue manages this namespace is not known",
}
_NO_WAY_OUT: Final = "Kueue lets none start without it. Delete the job and submit it again."


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
    """Inject label and `suspend`, or say why not."""
    requested = job.annotations.get(annotations.QUEUE)
    shown = annotations.mention(annotations.QUEUE, requested or "")
    if QUEUE_NAME in job.labels:
        if requested and job.labels[QUEUE_NAME] != requested:
            yield Caution(f"{shown} has no effect on a job with the label {QUEUE_NAME}")
        return
    name = _by_default(job, settings, ctx) if requested is None else requested
    invalid = f"{shown} is not a valid name of a queue" if requested and names.label_value_problem(requested) else ""
    if ctx.old is not None and (here := ctx.old.labels.get(QUEUE_NAME)):
        if not ctx.old.suspended:
            yield from _stay(here, requested, patch)
        else:
            reason = invalid or (_obstacle(job, name, ctx, patch) if name not in {"", here} else "")
            yield from _move(here, name, _NO_WAY_OUT if requested == "" else reason, patch)
        return
    if not name:
        return
    # Kueue puts a job in there in any case; if that is a mistake, the rule `local-queue` reports it.
    by_kueue = name == queues.DEFAULT and not (requested or settings.queue)
    reason = invalid or _obstacle(job, name, ctx, patch)
    if job.suspended and not (reason or requested or by_kueue or suspends_all(ctx.view, ctx.namespace)):
        reason = "spec.runPolicy.suspend is true. Remove it."
    if reason:
        if not by_kueue:
            yield Caution(invalid or f"not in queue {name}: {reason}")
    elif patch.add(LABEL, name):
        patch.add(SUSPEND, value=True, over=False)
        yield Note(f"put into queue {name}, which starts the job when there is room", brief=name)
        field, named = volcano.queue_of(job)
        if named and requested is None and named != name:
            yield Caution(f"in queue {name}: there is no queue {annotations.quoted(named)} ({field})")


def _by_default(job: MPIJob, settings: Settings, ctx: Context) -> str:
    """The queue of a job without the annotation; empty if it gets none."""
    named = volcano.queue_of(job)[1]
    if (named and not ctx.view.not_served(VOLCANO_QUEUES)) or _out_of_reach(job, ctx):
        return ""
    usual = settings.queue or queues.of_namespace(ctx.view, ctx.namespace)
    if not named or names.label_value_problem(named):
        return usual
    found = ctx.view.get(LOCAL_QUEUES, (ctx.namespace, named))
    return named if isinstance(found, LocalQueue) or not usual else usual


def _stay(here: str, asked: str | None, patch: PatchBuilder) -> Iterator[str]:
    """An update of a running job: Kueue rejects another queue, and none (`validateUpdateForQueueName`)."""
    if asked is not None and asked != here:
        shown = annotations.quoted(asked)
        yield Caution(f"stays in queue {here}, not {shown}: to move a running job, delete it and submit it again")
    patch.add(LABEL, here)


def _move(here: str, name: str, reason: str, patch: PatchBuilder) -> Iterator[str]:
    """An update of a waiting job: it moves to another queue if that takes it, else it keeps its place."""
    if reason:
        yield Caution(f"stays in queue {here}: {reason}")
    to = here if reason or not name else name
    if patch.add(LABEL, to):
        patch.add(SUSPEND, value=True, over=False)
        if to != here:
            yield Note(f"moved to queue {to}, which starts the job when there is room", brief=to)


def _out_of_reach(job: MPIJob, ctx: Context) -> str:
    """Why no queue can take the job; empty if one may."""
    if not job.managed_here:
        return "spec.runPolicy.managedBy names another controller"
    reason = unmanaged(ctx.view, ctx.namespace)
    return "" if reason is None else _OUT_OF_REACH[reason]


def _obstacle(job: MPIJob, name: str, ctx: Context, patch: PatchBuilder) -> str:
    """Why Kueue would, or might, never resume the job in this queue; empty if it certainly would."""
    if reason := _out_of_reach(job, ctx):
        return reason
    if fault := queues.fault(ctx.view, ctx.namespace, name):
        return f"{fault.in_words(name)}. {queues.advice(ctx.view, ctx.namespace, name)}"
    if names.label_value_problem(name) or not queues.takes_jobs(ctx.view, ctx.namespace, name):
        return "whether it takes jobs is not known"
    kind, of_class, found = "WorkloadPriorityClass", patch.get(WORKLOAD_CLASS), priority.has_workload_class
    if not of_class:
        _, of_class = next(priority.priority_classes(job), ("", ""))
        kind, found = "PriorityClass", priority.has_class
    if not of_class or (there := found(ctx.view, of_class)) is True:
        return ""
    shown = annotations.mention(f"its {kind}", of_class)
    return f"whether there is {shown} is not known" if there is UNKNOWN else f"{shown} does not exist"
