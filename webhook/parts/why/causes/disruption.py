"""Pods that were lost while the job ran: preempted, evicted, killed for lack of memory, or on a lost node.

The reasons are from Kubernetes 1.35 (`DisruptionTarget`, `pkg/kubelet/eviction`, `pkg/controller/tainteviction`). If
the operator has replaced a worker, only events about the lost pod remain.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut, merged
from webhook.parts.why.causes import ends
from webhook.parts.why.causes.start import pod_is_worker
from webhook.parts.why.sight import Json, Sight, happened


class _Loss(NamedTuple):
    id: str
    text: str
    fix: str


_PREEMPTED: Final = _Loss(
    "preempted",
    "it was preempted by a pod with a higher priority",
    "Set priorityClassName in the templates of Launcher and Worker to a class with a higher priority: kubectl get "
    "priorityclasses",
)
_KUBELET: Final = _Loss(
    "evicted",
    "its node evicted it",
    "Raise the Worker's requests of memory and ephemeral-storage to what it uses, and create the job again.",
)
_OTHER: Final = _Loss("evicted", "its node ended it", "kubectl describe pod says why. Create the job again.")
_API: Final = _Loss(
    "evicted",
    "it was evicted from its node by a drain, an autoscaler or Karpenter",
    'Add to the Worker\'s template.metadata.annotations karpenter.sh/do-not-disrupt: "true" and '
    'cluster-autoscaler.kubernetes.io/safe-to-evict: "false", and create the job again.',
)
_NODE: Final = _Loss(
    "node-lost",
    "its node was lost",
    "kubectl get nodes shows whether it is back. Create the job again, and let the program resume from a checkpoint.",
)
_REASONS: Final = (
    (_PREEMPTED, "Preempted Preempting PreemptionByScheduler"),
    (_KUBELET, "Evicted TerminationByKubelet"),
    (_API, "EvictionByEvictionAPI ScaleDown"),
    (_NODE, "DeletionByTaintManager TaintManagerEviction DeletionByPodGC NodeLost NodeNotReady Terminated"),
)
LOSSES: Final = {reason: loss for loss, reasons in _REASONS for reason in reasons.split()}
"""Kinds of loss by the reason in a condition, a status or an event."""


def causes(sight: Sight) -> Iterator[Cause]:
    """The causes for lost pods. Before the launcher exists, a missing pod is not a lost pod."""
    losses = ((pod, _killed(sight, pod) or _lost(sight, pod)) for pod in sight.current)
    if sight.launchers or sight.finished:
        yield from merged((loose.name(pod), cause) for pod, cause in losses if cause)


def _killed(sight: Sight, pod: Json) -> Cause | None:
    """The cause for a worker whose container was killed for lack of memory and restarted. The ranks do not restart."""
    for status in loose.items(pod, "status", "containerStatuses") if pod_is_worker(pod) else ():
        last = loose.mapping(status, "lastState", "terminated")
        if last.get("reason") == "OOMKilled" and loose.mapping(status, "state", "running"):
            return ends.cause(sight, pod, status, _stage(sight, loose.moment(last, "finishedAt")))
    return None


def _lost(sight: Sight, pod: Json) -> Cause | None:
    name, uid = loose.name(pod), loose.text(pod, "metadata", "uid")
    target = loose.condition(pod, "DisruptionTarget")
    if target.get("status") == "True" and (loss := LOSSES.get(loose.text(target, "reason"))):
        when, message = loose.moment(target, "lastTransitionTime"), loose.text(target, "message")
        return _cause(loss, message, f"Pod {name}, DisruptionTarget", _stage(sight, when))
    if loose.text(pod, "status", "phase") in {"Failed", "Unknown"} and (reason := loose.text(pod, "status", "reason")):
        message = f"{reason}: {loose.text(pod, 'status', 'message')}"
        return _cause(LOSSES.get(reason, _OTHER), message, f"Pod {name}", Stage.START)
    for event in sight.events_about(name, *LOSSES):
        if loose.holds(pod, "Ready") and uid and loose.text(event, "involvedObject", "uid") == uid:
            continue
        reason, message = loose.text(event, "reason"), loose.text(event, "message")
        return _cause(LOSSES[reason], message, f"Event {reason} of Pod {name}", _stage(sight, happened(event)))
    return None


def _cause(loss: _Loss, message: str, where: str, stage: Stage) -> Cause:
    return Cause(loss.id, stage, f"{loss.text} ({cut(message)})", where, loss.fix)


def _stage(sight: Sight, when: datetime | None) -> Stage:
    started = loose.moment(next(iter(sight.launchers), None), "metadata", "creationTimestamp")
    return Stage.RUN if started and when and started > when else Stage.START
