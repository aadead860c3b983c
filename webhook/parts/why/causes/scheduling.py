"""Pods without a node, by the messages of kube-scheduler.

Source of the messages: https://github.com/kubernetes/kubernetes/tree/v1.35.4/pkg/scheduler/framework
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from webhook.api.pod import Toleration
from webhook.api.taints import Taint, untolerated
from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut, listed
from webhook.parts.why.limits import MAX_AMOUNT_DIGITS
from webhook.parts.why.sight import Json, Sight

DEFAULT_SCHEDULER: Final = "default-scheduler"
_NO_CLAIM: Final = re.compile(r'persistentvolumeclaim "(?P<claim>[^"]+)" (?P<how>not found|bound to non-existent.*)')
_NODES: Final = re.compile(
    r"(?<!\d)\d+/\d+ nodes are available: (?P<why>.*?)(?:\. preemption:.*|\. no new claims.*)?$", re.MULTILINE
)
_ROOM: Final = re.compile(r"Insufficient (\S+?)[.,]?(?: |$)|Too many pods")
_TAINT: Final = re.compile(r"untolerated taint \{([^:}]+): ?([^}]*)\}")
_OF_NODES: Final = ("node.kubernetes.io/", "node-role.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of taints on nodes that are not ready or not meant for jobs."""
# Texts that need quotes, because YAML reads them as numbers, booleans or null.
_NEEDS_QUOTES: Final = re.compile(r"\d.*|true|false|yes|no|on|off|y|n|null", re.IGNORECASE)
_OWN_LAUNCHER: Final = (
    "Remove the devices from spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].resources.limits: a launcher "
    "only starts the ranks."
)
_OWN_WORKERS: Final = (
    "Lower spec.mpiReplicaSpecs[Worker].replicas to the workers that have a node, or wait until other jobs end. In a "
    "queue of Kueue a job starts only when all of its pods fit."
)
_ACCELERATORS: Final = frozenset({"accelerator-available", "tier"})


def causes(sight: Sight) -> Iterator[Cause]:
    """The causes for pods without a node. Pods with the same message share one cause."""
    if sight.finished:
        return
    waiting: dict[str, list[Json]] = {}
    for pod in sight.current:
        if not loose.text(pod, "spec", "nodeName") and loose.at(pod, "metadata", "deletionTimestamp") is None:
            waiting.setdefault(loose.text(loose.condition(pod, "PodScheduled"), "message"), []).append(pod)
    for message, pods in waiting.items():
        yield _cause(sight, message, pods)


def _cause(sight: Sight, message: str, pods: list[Json]) -> Cause:
    names, launchers = listed([loose.name(pod) for pod in pods]), {loose.name(pod) for pod in sight.launchers}
    where = f"Pod {loose.name(pods[0])}, PodScheduled"
    gates = [loose.text(gate, "name") for gate in loose.items(pods[0], "spec", "schedulingGates")]
    if gates:
        text = f"{names}: held by the scheduling gate {', '.join(gates)}"
        fix = "The controller that set the gate removes it; Kueue does so when it has found nodes."
        return Cause("gated", Stage.SCHEDULING, text, where, fix)
    scheduler = loose.text(pods[0], "spec", "schedulerName")
    if not message:
        text = f'{names}: the scheduler "{scheduler or DEFAULT_SCHEDULER}" has not processed it'
        fix = "Wait a moment."
        if scheduler not in {"", DEFAULT_SCHEDULER}:
            fix = "Remove schedulerName from the template, or ask your administrator whether this scheduler runs."
        return Cause("no-scheduler", Stage.SCHEDULING, text, where, fix, passes=scheduler in {"", DEFAULT_SCHEDULER})
    if no_claim := _NO_CLAIM.search(message):
        text = f'{names}: PersistentVolumeClaim "{no_claim["claim"]}" {no_claim["how"]}'
        fix = "Create it, or correct claimName: kubectl get pvc lists the claims."
        return Cause("no-claim", Stage.SCHEDULING, text, where, fix, frozenset({"references"}))
    if "unbound immediate PersistentVolumeClaims" in message:
        return _unbound(sight, names, where, pods[0])
    match = _NODES.search(message)
    why = cut(match["why"] if match else message)
    role = "Launcher" if loose.name(pods[0]) in launchers else "Worker"
    tainted = f"add to spec.mpiReplicaSpecs[{role}].template.spec.tolerations: "
    taints = _tolerations(sight, pods[0], why) if "untolerated taint" in why else None
    if _ROOM.search(why):
        text = f"{names}: no node has room now: {why}"
        fix = "Wait until other jobs end, or request less for each pod. A pod larger than every node waits forever."
        if held := _held(sight, pods[0], why):
            text, fix = f"{text}; {held}", _OWN_LAUNCHER if role == "Launcher" else _OWN_WORKERS
        elif taints:
            fix = f"Wait until other jobs end, or, for nodes with a taint, {tainted}{taints}"
        never = sight.finding(_ACCELERATORS)
        if never is not None and never.path.endswith(".replicas"):
            text = f"{names}: the cluster could never hold the whole job ({never.message}): {why}"
        return Cause("no-room", Stage.SCHEDULING, text, where, fix, _ACCELERATORS, passes=never is None)
    text = f"{names}: no node matches: {why}"
    fix = "Compare nodeSelector, affinity and tolerations with: kubectl get nodes --show-labels"
    if taints or all("untolerated taint" in part for part in why.split(", ")):
        fix = f"A{tainted[1:]}{taints or 'one for a taint that kubectl describe nodes shows.'}"
        if taints == "":
            fix = "These nodes are not ready, or not for jobs: kubectl describe nodes"
    return Cause("no-node", Stage.SCHEDULING, text, where, fix, _ACCELERATORS)


def _held(sight: Sight, pod: Json, why: str) -> str:
    for device in (name for name in _ROOM.findall(why) if "/" in name and _requested(pod, name)):
        holders = [
            other for other in sight.current if loose.text(other, "spec", "nodeName") and _requested(other, device)
        ]
        if holders:
            held = sum(_requested(other, device) for other in holders)
            return f"{listed([loose.name(other) for other in holders])} of this job hold {held} {device}"
    return ""


def _requested(pod: Json, device: str) -> int:
    limits = (loose.at(item, "resources", "limits", device) for item in loose.items(pod, "spec", "containers"))
    return sum(int(amount) for amount in map(str, limits) if amount.isdecimal() and len(amount) <= MAX_AMOUNT_DIGITS)


def _tolerations(sight: Sight, pod: Json, why: str) -> str | None:
    """The tolerations to add; empty if jobs should not tolerate the taints, None if the taints are unknown.

    Since Kubernetes 1.35 the message does not name the taint. The taints are then read from nodes with the pod's
    devices and labels.
    """
    taints = [Taint(key, value) for key, value in _TAINT.findall(why)]
    if not taints:
        limits = [loose.mapping(item, "resources", "limits") for item in loose.items(pod, "spec", "containers")]
        devices = {name for names in limits for name in names if "/" in name}
        selector = loose.mapping(pod, "spec", "nodeSelector").items()
        fitting = [
            node for node in sight.nodes if devices <= node.allocatable.keys() and selector <= node.labels.items()
        ]
        with suppress(msgspec.ValidationError):
            tolerated = msgspec.convert(loose.items(pod, "spec", "tolerations"), list[Toleration])
            taints = untolerated((taint for node in fitting for taint in node.taints), tolerated)
    tolerations = [_toleration(taint) for taint in dict.fromkeys(taints) if not taint.key.startswith(_OF_NODES)]
    return " or ".join(tolerations) if taints else None


def _toleration(taint: Taint) -> str:
    value = f'"{taint.value}"' if _NEEDS_QUOTES.fullmatch(taint.value) else taint.value
    operator = f"operator: Equal, value: {value}" if value else "operator: Exists"
    return f"{{key: {taint.key}, {operator}{taint.effect and f', effect: {taint.effect}'}}}"


def _unbound(sight: Sight, names: str, where: str, pod: Json) -> Cause:
    claims = list(claims_of(pod))
    details = ""
    for claim in claims:
        for event in sight.events_about(claim, "ProvisioningFailed", "FailedBinding", "ExternalProvisioning"):
            details = f' (PersistentVolumeClaim "{claim}": {cut(loose.text(event, "message"))})'
            break
    text = f"{names}: a volume does not exist yet: PersistentVolumeClaim {' or '.join(claims)} has none{details}"
    fix = "kubectl describe pvc: name a storage class that exists, or request the volume."
    return Cause("unbound-claim", Stage.SCHEDULING, text, where, fix)


def claims_of(pod: Mapping[str, object]) -> Iterator[str]:
    for volume in loose.items(pod, "spec", "volumes"):
        if claim := loose.text(volume, "persistentVolumeClaim", "claimName"):
            yield claim
