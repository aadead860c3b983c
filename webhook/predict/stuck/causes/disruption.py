"""Workers that went away while the job ran: preempted, evicted, killed for memory, or on a node that was lost.

The reasons are those of kubernetes 1.35 (`DisruptionTarget`, `pkg/kubelet/eviction`, `pkg/controller/tainteviction`).
A worker that the operator has created again under the same name leaves only events.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from webhook.predict.stuck import loose
from webhook.predict.stuck.cause import Cause, Stage, cut
from webhook.predict.stuck.causes import ends
from webhook.predict.stuck.sight import Json, Sight, created, happened, listed


class _Loss(NamedTuple):
    id: str
    text: str
    fix: str


_PREEMPTED: Final = _Loss(
    "preempted",
    "it was preempted by a pod with a higher priority",
    "Set priorityClassName in the templates of Launcher and Worker to a class that others do not preempt: kubectl get "
    "priorityclasses",
)
_KUBELET: Final = _Loss(
    "evicted",
    "its node evicted it",
    "Raise the Worker's requests of memory and ephemeral-storage to what it uses, and create the job again.",
)
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
LOSSES: Final = {
    "Preempted": _PREEMPTED,
    "Preempting": _PREEMPTED,
    "PreemptionByScheduler": _PREEMPTED,
    "Evicted": _KUBELET,
    "TerminationByKubelet": _KUBELET,
    "EvictionByEvictionAPI": _API,
    "EvictedByDescheduler": _API,
    "ScaleDown": _API,
    "DeletionByTaintManager": _NODE,
    "TaintManagerEviction": _NODE,
    "DeletionByPodGC": _NODE,
    "NodeLost": _NODE,
    "NodeNotReady": _NODE,
    "NodeShutdown": _NODE,
    "Terminated": _NODE,
}
"""By the reason of a condition, a status or an event."""


def causes(sight: Sight) -> Iterator[Cause]:
    """One for all workers with the same loss; before the launcher exists nothing is lost."""
    found: dict[tuple[str, str], list[tuple[str, Cause]]] = {}
    for pod in sight.workers if sight.launchers or sight.finished else ():
        if cause := _killed(sight, pod) or _lost(sight, pod):
            found.setdefault((cause.id, cause.text), []).append((loose.name(pod), cause))
    for same in found.values():
        cause = same[0][1]
        text = f"{listed([name for name, _ in same])}: {cause.text}"
        yield Cause(cause.id, cause.stage, text, cause.where, cause.fix)


def _killed(sight: Sight, pod: Json) -> Cause | None:
    """A container that runs again after it was killed for memory: its ranks are gone."""
    for status in loose.items(pod, "status", "containerStatuses"):
        last = loose.mapping(status, "lastState", "terminated")
        if last.get("reason") == "OOMKilled" and loose.mapping(status, "state", "running"):
            since = loose.moment(last, "finishedAt")
            return ends.cause(sight, pod, status, _stage(sight, since.timestamp() if since else 0.0))
    return None


def _lost(sight: Sight, pod: Json) -> Cause | None:
    name = loose.name(pod)
    target = loose.condition(pod, "DisruptionTarget")
    if target.get("status") == "True" and (loss := LOSSES.get(loose.text(target, "reason"))):
        since = loose.moment(target, "lastTransitionTime")
        when, said = since.timestamp() if since else 0.0, loose.text(target, "message")
        return _cause(sight, loss, said, f"Pod {name}, DisruptionTarget", when)
    if loose.text(pod, "status", "phase") in {"Failed", "Unknown"} and (reason := loose.text(pod, "status", "reason")):
        said = f"{reason}: {loose.text(pod, 'status', 'message')}"
        return _cause(sight, LOSSES.get(reason, _KUBELET), said, f"Pod {name}", 0.0)
    for event in sight.said(name, *LOSSES):
        reason = loose.text(event, "reason")
        return _cause(
            sight, LOSSES[reason], loose.text(event, "message"), f"Event {reason} of Pod {name}", happened(event)
        )
    return None


def _cause(sight: Sight, loss: _Loss, said: str, where: str, when: float) -> Cause:
    return Cause(loss.id, _stage(sight, when), f"{loss.text} ({cut(said)})", where, loss.fix)


def _stage(sight: Sight, when: float) -> Stage:
    """A launcher that started later has been tried again; one that was there before waits for lost ranks."""
    newest = next(iter(sight.launchers), None)
    later = newest is not None and when and created(newest) > when
    return Stage.RUN if later else Stage.START
