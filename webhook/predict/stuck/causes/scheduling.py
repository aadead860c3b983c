"""Pods without a node: what kube-scheduler says of them.

Its texts are those of the plugins in https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/scheduler/framework.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from webhook.predict.stuck import loose
from webhook.predict.stuck.cause import Cause, Stage, cut
from webhook.predict.stuck.sight import Json, Sight, listed

DEFAULT_SCHEDULER: Final = "default-scheduler"
_NO_CLAIM: Final = re.compile(r'persistentvolumeclaim "(?P<claim>[^"]+)" (?P<how>not found|bound to non-existent.*)')
_NODES: Final = re.compile(
    r"(?<!\d)\d+/\d+ nodes are available: (?P<why>.*?)(?:\. preemption:.*|\. no new claims.*)?$", re.MULTILINE
)
_ROOM: Final = re.compile(r"Insufficient (\S+?)[.,]?(?: |$)|Too many pods")
_ACCELERATORS: Final = frozenset({"accelerator-available", "tier"})


def causes(sight: Sight) -> Iterator[Cause]:
    """One for all pods that wait for the same."""
    if sight.finished:
        return
    waiting: dict[str, list[Json]] = {}
    for pod in sight.current:
        if not loose.text(pod, "spec", "nodeName") and loose.at(pod, "metadata", "deletionTimestamp") is None:
            waiting.setdefault(_said(pod), []).append(pod)
    for said, pods in waiting.items():
        yield _cause(sight, said, pods)


def _said(pod: Json) -> str:
    return loose.text(loose.condition(pod, "PodScheduled"), "message")


def _cause(sight: Sight, said: str, pods: list[Json]) -> Cause:
    names = listed([loose.name(pod) for pod in pods])
    where = f"Pod {loose.name(pods[0])}, PodScheduled"
    gates = [loose.text(gate, "name") for gate in loose.items(pods[0], "spec", "schedulingGates")]
    if gates:
        text = f"{names}: held by the scheduling gate {', '.join(gates)}"
        fix = "Whoever put the gate there has to lift it; Kueue does so when it has found nodes."
        return Cause("gated", Stage.SCHEDULING, text, where, fix)
    scheduler = loose.text(pods[0], "spec", "schedulerName")
    if not said:
        text = f'{names}: the scheduler "{scheduler or DEFAULT_SCHEDULER}" has not looked at it'
        fix = "Wait a moment."
        if scheduler not in {"", DEFAULT_SCHEDULER}:
            fix = "Take schedulerName out of the template, or ask your administrator whether this scheduler runs."
        return Cause("no-scheduler", Stage.SCHEDULING, text, where, fix, passes=scheduler in {"", DEFAULT_SCHEDULER})
    if found := _NO_CLAIM.search(said):
        text = f'{names}: PersistentVolumeClaim "{found["claim"]}" {found["how"]}'
        fix = "Create it, or correct claimName: kubectl get pvc lists what there is."
        return Cause("no-claim", Stage.SCHEDULING, text, where, fix, frozenset({"references"}))
    if "unbound immediate PersistentVolumeClaims" in said:
        return _unbound(sight, names, where, pods[0])
    whole = _NODES.search(said)
    why = cut(whole["why"] if whole else said)
    if _ROOM.search(why):
        text = f"{names}: no node has room now: {why}"
        fix = "Wait until others end, or ask for less for each pod. Where no node is as large, it waits for ever."
        return Cause("no-room", Stage.SCHEDULING, text, where, fix, _ACCELERATORS, passes=True)
    text = f"{names}: no node will do: {why}"
    fix = "Compare nodeSelector, affinity and tolerations with: kubectl get nodes --show-labels"
    return Cause("no-node", Stage.SCHEDULING, text, where, fix, _ACCELERATORS)


def _unbound(sight: Sight, names: str, where: str, pod: Json) -> Cause:
    """The claims, with what is said of them: the scheduler does not name them."""
    claims = list(claims_of(pod))
    told = ""
    for claim in claims:
        for event in sight.said(claim, "ProvisioningFailed", "FailedBinding", "ExternalProvisioning"):
            told = f' (PersistentVolumeClaim "{claim}": {cut(loose.text(event, "message"))})'
            break
    text = f"{names}: a volume is not there yet: PersistentVolumeClaim {' or '.join(claims)} has none{told}"
    fix = "kubectl describe pvc: name a storage class that exists, or ask for the volume."
    return Cause("unbound-claim", Stage.SCHEDULING, text, where, fix)


def claims_of(pod: Mapping[str, object]) -> Iterator[str]:
    """The claims that a pod names."""
    for volume in loose.items(pod, "spec", "volumes"):
        if claim := loose.text(volume, "persistentVolumeClaim", "claimName"):
            yield claim
