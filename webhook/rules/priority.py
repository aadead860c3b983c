"""The job uses only priority classes that exist and are allowed.

If a PriorityClass does not exist, the API server rejects every pod of the template, but not the job. For a queued job,
Kueue uses the first of these classes: the WorkloadPriorityClass in the label `kueue.x-k8s.io/priority-class`, the
PriorityClass in `schedulingPolicy.priorityClass`, that of the launcher, that of the worker. If the class does not
exist, Kueue creates no Workload and the job stays suspended; for a PriorityClass there is not even an event. A missing
class is a warning if Kueue does not read it: in a label without a queue, or in `schedulingPolicy.priorityClass` for
Volcano.

A template's `priority` and `preemptionPolicy` must equal the values of its class, or the API server rejects the pods.
Without a class, and without a default class, the values are 0 and `PreemptLowerPriority`. It is best to omit both
fields.

A class is accepted if it is unknown whether it exists. `allowed` and `allowedWorkload` list the classes that jobs may
use. Without these settings, jobs may use all classes, even `system-cluster-critical` and `system-node-critical`.
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
from webhook.rules import CauseReason, Violation, first_of, rule, shortened
from webhook.rules.limits import MAX_SHOWN_CLASSES

LABEL = f"metadata.labels[{PRIORITY_CLASS}]"

NONE_EXISTS = "Remove it: none of the allowed classes exists."

Exists = Callable[[str], bool | Unknown]


class Settings(RuleSettings):
    """The classes that jobs may choose."""

    allowed: ObjectNames = Field((), description="PriorityClasses that jobs may name; an empty list allows all.")
    allowed_workload: ObjectNames = Field(
        (), description="WorkloadPriorityClasses of Kueue that jobs may name; an empty list allows all."
    )


@rule("priority", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
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
                effect = "so Kueue builds no Workload and reports nothing: the job waits for ever"
            else:
                effect = "" if path == SCHEDULING_POLICY else "so the API server rejects the pods"
            yield _absent(path, "PriorityClass", name, effect, _offer(settings.allowed, exists))
    for _, path, replica in job.replicas:
        pod = replica.template.spec
        if pod is not None and (pod.priority is not None or pod.preemption_policy):
            yield from _stated(pod, f"{path}.template.spec", ctx)


def _stated(pod: PodSpec, path: str, ctx: Context) -> Iterator[Violation]:
    """Reports nothing if the pod names a class that is missing or unknown."""
    pod_class = class_of_pods(ctx.view, pod.priority_class_name)
    if pod_class is None or (pod_class is UNKNOWN and pod.priority_class_name):
        return
    expected = NO_CLASS if pod_class is UNKNOWN else pod_class
    source = f'PriorityClass "{shortened(expected.name)}"' if expected.name else "no PriorityClass"
    policy = pod.preemption_policy if pod.preemption_policy in PREEMPTION_POLICIES else None
    fix = "Remove it." if expected.name else "Remove it, or set priorityClassName."
    for field, stated, computed in (
        ("priority", pod.priority, expected.value),
        ("preemptionPolicy", policy, expected.preemption_policy),
    ):
        if stated is not None and stated != computed:
            fault = f"is {shortened(str(stated))}, but only {computed} is valid ({source}: the pods are rejected)"
            yield Violation(f"{path}.{field}", fault, fix, advisory=pod_class is UNKNOWN)


def _offer(allowed: tuple[str, ...], exists: Exists) -> str | None:
    """The allowed classes for a fix. Empty if none of them exists; None if the policy allows every class."""
    if not allowed:
        return None
    names = [name for name in allowed if exists(name) is not False]
    shown = first_of(names, MAX_SHOWN_CLASSES)
    return shown if len(names) < 2 else f"one of {shown}"


def _absent(path: str, kind: str, name: str, effect: str, offer: str | None) -> Violation:
    """Without an `effect`, the violation is a warning, because the class may never be read."""
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
