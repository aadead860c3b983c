"""The priority classes that a job names exist, and may be used here.

With a PriorityClass that does not exist the API server refuses every pod of the template, while the job looks fine.
Kueue takes the priority of a queued job from the WorkloadPriorityClass in the label `kueue.x-k8s.io/priority-class`,
else from the first PriorityClass that is named in `schedulingPolicy.priorityClass`, the launcher, or the worker. If
that one does not exist Kueue builds no Workload: the job stays suspended, and in the second case no event says so. A
label without a queue, and a `schedulingPolicy.priorityClass` that is Volcano's alone, only warn.

A class is let through while it is unknown whether it exists, and suggested unless it is known to be absent. `allowed`
and `allowedWorkload` narrow the choice; without them Kubernetes' own `system-cluster-critical` and
`system-node-critical` may be named too.
"""

from collections.abc import Callable, Iterator

from pydantic import Field

from webhook.api.kueue import PRIORITY_CLASS, QUEUE_NAME
from webhook.api.mpijob import MPIJob
from webhook.cluster.view import Unknown
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import ObjectNames, RuleSettings
from webhook.predict.kueue.priority import SCHEDULING_POLICY, has_class, has_workload_class, priority_classes
from webhook.rules import CauseReason, Violation, rule, shortened

LABEL = f"metadata.labels[{PRIORITY_CLASS}]"

_SHOWN = 5
NONE_EXISTS = "Remove it: none of those that are allowed here exists."

Exists = Callable[[str], bool | Unknown]


class Settings(RuleSettings):
    """The classes that jobs may choose."""

    allowed: ObjectNames = Field((), description="PriorityClasses that jobs may name; none means all.")
    allowed_workload: ObjectNames = Field(
        (), description="WorkloadPriorityClasses of Kueue that jobs may name; none means all."
    )


@rule("priority", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Kueue's class; then each PriorityClass."""
    queued = QUEUE_NAME in job.labels
    exists: Exists = lambda name: has_class(ctx.view, name)  # noqa: E731
    workload_exists: Exists = lambda name: has_workload_class(ctx.view, name)  # noqa: E731
    workload_class = job.labels.get(PRIORITY_CLASS)
    if workload_class:
        if settings.allowed_workload and workload_class not in settings.allowed_workload:
            yield _forbidden(LABEL, workload_class, _offer(settings.allowed_workload, workload_exists))
        elif workload_exists(workload_class) is False:
            effect = "so Kueue builds no Workload and the job waits for ever" if queued else ""
            offer = _offer(settings.allowed_workload, workload_exists)
            yield _absent(LABEL, "WorkloadPriorityClass", workload_class, effect, offer)
    for index, (path, name) in enumerate(priority_classes(job)):
        if settings.allowed and name not in settings.allowed:
            yield _forbidden(path, name, _offer(settings.allowed, exists))
        elif exists(name) is False:
            if queued and not workload_class and index == 0:
                effect = "so Kueue builds no Workload and says nothing: the job waits for ever"
            else:
                effect = "" if path == SCHEDULING_POLICY else "so the API server refuses the pods"
            yield _absent(path, "PriorityClass", name, effect, _offer(settings.allowed, exists))


def _offer(allowed: tuple[str, ...], exists: Exists) -> str | None:
    """What may be named instead, as far as it is not known to be absent; empty for nothing, None for any class."""
    if not allowed:
        return None
    names = [name for name in allowed if exists(name) is not False]
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return shown if len(names) < 2 else f"one of {shown}"


def _absent(path: str, kind: str, name: str, effect: str, offer: str | None) -> Violation:
    """Without an effect the class may not be read by anybody, so it is advice."""
    fault = f'{kind} "{shortened(name)}" does not exist'
    if offer is None:
        fix = f"Name one that exists (kubectl get {kind.lower()}), or remove it."
    else:
        fix = f"Use {offer}." if offer else NONE_EXISTS
    message = f"{fault}, {effect}" if effect else fault
    return Violation(path, message, fix=fix, reason=CauseReason.NOT_SUPPORTED, advisory=not effect)


def _forbidden(path: str, name: str, offer: str | None) -> Violation:
    fix = f"Use {offer}, or remove it." if offer else NONE_EXISTS
    return Violation(path, f'"{shortened(name)}" is not allowed here', fix=fix, reason=CauseReason.FORBIDDEN)
