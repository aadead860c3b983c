"""The priority classes that a job names exist, and may be used here.

If a PriorityClass does not exist the API server rejects every pod of the template, while the job looks fine. Kueue
takes the priority of a queued job from the WorkloadPriorityClass in the label `kueue.x-k8s.io/priority-class`, else
from the first PriorityClass that is named in `schedulingPolicy.priorityClass`, the launcher, or the worker. If that one
does not exist Kueue builds no Workload: the job stays suspended, and in the second case no event says so. A label
without a queue, and a `schedulingPolicy.priorityClass` that is Volcano's alone, only warn.

A template's own `priority` and `preemptionPolicy` must be those of the class, or the API server rejects the pods;
without a class and a default one these are 0 and `PreemptLowerPriority`. They are best left out.

A class passes while it is unknown whether it exists, and is suggested unless it is known to be missing. `allowed` and
`allowedWorkload` narrow the choice; without them Kubernetes' own `system-cluster-critical` and `system-node-critical`
may be named too.
"""

from collections.abc import Callable, Iterator

from pydantic import Field

from webhook.api import names
from webhook.api.kueue import PRIORITY_CLASS, QUEUE_NAME
from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodSpec
from webhook.cluster.resources.priority_classes import PREEMPTION_POLICIES
from webhook.cluster.view import UNKNOWN, Unknown
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import ObjectNames, RuleSettings
from webhook.predict.kueue.priority import SCHEDULING_POLICY, has_class, has_workload_class, priority_classes
from webhook.predict.pod_priority import NO_CLASS, class_of_pods
from webhook.rules import CauseReason, Violation, rule, shortened
from webhook.rules.limits import MAX_SHOWN_CLASSES

LABEL = f"metadata.labels[{PRIORITY_CLASS}]"

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
        elif path != SCHEDULING_POLICY and (problem := names.dns_1123_subdomain_problem(name)):
            fix = names.advice(name, names.dns_1123_subdomain_problem)
            yield Violation(path, f'"{shortened(name)}" {problem}', fix)
        elif exists(name) is False:
            if queued and not workload_class and index == 0:
                effect = "so Kueue builds no Workload and says nothing: the job waits for ever"
            else:
                effect = "" if path == SCHEDULING_POLICY else "so the API server rejects the pods"
            yield _absent(path, "PriorityClass", name, effect, _offer(settings.allowed, exists))
    for _, path, replica in job.replicas():
        pod = replica.template.spec
        if pod is not None and (pod.priority is not None or pod.preemption_policy):
            yield from _stated(pod, f"{path}.template.spec", ctx)


def _stated(pod: PodSpec, path: str, ctx: Context) -> Iterator[Violation]:
    """The template's values next to its class; nothing if the class is missing or unknown."""
    known = class_of_pods(ctx.view, pod.priority_class_name)
    if known is None or (known is UNKNOWN and pod.priority_class_name):
        return
    meant = NO_CLASS if known is UNKNOWN else known
    source = f'PriorityClass "{shortened(meant.name)}"' if meant.name else "no PriorityClass"
    policy = pod.preemption_policy if pod.preemption_policy in PREEMPTION_POLICIES else None
    fix = "Remove it." if meant.name else "Remove it, or set priorityClassName."
    for field, stated, computed in (
        ("priority", pod.priority, meant.value),
        ("preemptionPolicy", policy, meant.preemption_policy),
    ):
        if stated is not None and stated != computed:
            fault = f"is {shortened(str(stated))}, but only {computed} is taken ({source}: the pods are rejected)"
            yield Violation(f"{path}.{field}", fault, fix, advisory=known is UNKNOWN)


def _offer(allowed: tuple[str, ...], exists: Exists) -> str | None:
    """The alternatives that are not known to be missing; empty for none, None for any class."""
    if not allowed:
        return None
    names = [name for name in allowed if exists(name) is not False]
    shown = ", ".join(names[:MAX_SHOWN_CLASSES]) + (", ..." if len(names) > MAX_SHOWN_CLASSES else "")
    return shown if len(names) < 2 else f"one of {shown}"


def _absent(path: str, kind: str, name: str, effect: str, offer: str | None) -> Violation:
    """Without an effect the class may never be read, so it is advice."""
    fault = f'{kind} "{shortened(name)}" does not exist'
    if offer is None:
        fix = f"Name an existing {kind} (kubectl get {kind.lower()}), or remove it."
    else:
        fix = f"Use {offer}." if offer else NONE_EXISTS
    message = f"{fault}, {effect}" if effect else fault
    return Violation(path, message, fix=fix, reason=CauseReason.NOT_SUPPORTED, advisory=not effect)


def _forbidden(path: str, name: str, offer: str | None) -> Violation:
    fix = f"Use {offer}, or remove it." if offer else NONE_EXISTS
    return Violation(path, f'"{shortened(name)}" is not allowed here', fix=fix, reason=CauseReason.FORBIDDEN)
