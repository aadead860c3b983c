"""Jobs that are suspended by Kueue or by a user.

Sources: Kueue v0.18.3, `apis/kueue/v1beta2/workload_types.go` for conditions, and the scheduler for messages.
"""

import re
from collections.abc import Iterator
from typing import Final

from webhook.api.kueue import QUEUE_NAME
from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut
from webhook.parts.why.sight import Json, Sight

LOCAL_QUEUE: Final = frozenset({"local-queue"})
EVER_FITS: Final = frozenset({"ever-fits", "gang"})
PRIORITY: Final = frozenset({"priority"})
SPEC: Final = "spec.runPolicy.suspend"
_NONE: Final[frozenset[str]] = frozenset()
_WAIT: Final = "Wait: it starts automatically when other jobs end."
_ASK: Final = "Ask your administrator, or use another queue: kubectl get localqueues"
_FULL: Final = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\S+) more needed")
_SET: Final = re.compile(r"couldn't assign flavors to pod set (\S+): ")
_NO_FLAVOR: Final = re.compile(r"pod set (\S+): no TAS flavor assigned")

_EVICTED: Final = {
    "Preempted": "another job preempted it",
    "PodsReadyTimeout": "its pods were not ready in time",
    "AdmissionCheck": "an admission check rejected it",
    "ClusterQueueStopped": "its ClusterQueue was stopped",
    "LocalQueueStopped": "its LocalQueue was stopped",
    "NodeFailures": "a node failed",
}


def causes(sight: Sight) -> Iterator[Cause]:
    if sight.workload is not None:
        yield from _of_workload(sight, sight.workload)
    elif sight.suspended:
        yield _without_workload(sight)


def _without_workload(sight: Sight) -> Cause:
    if not (sight.queue or sight.all_queued):
        patch = '{"spec":{"runPolicy":{"suspend":false}}}'
        fix = f"Set {SPEC} to false: kubectl patch mpijob {sight.name} --type=merge -p '{patch}'"
        return Cause("suspended", Stage.QUEUE, "it is suspended by its user, and by no queue", SPEC, fix)
    if not sight.queue:
        text = "it names no queue, and in this namespace Kueue starts only jobs that name one"
        fix = f"Add the label {QUEUE_NAME}: kubectl get localqueues lists the queues."
        return Cause("no-queue", Stage.QUEUE, text, f"metadata.labels[{QUEUE_NAME}]", fix, LOCAL_QUEUE)
    where = f"metadata.labels[{QUEUE_NAME}]"
    for event in sight.events_about(sight.name, "WorkloadPriorityClassNotFound"):
        text = f"Kueue makes no Workload of it: {cut(loose.text(event, 'message'))}"
        return Cause("no-priority-class", Stage.QUEUE, text, where, "Name a class that exists.", PRIORITY)
    finding = sight.finding(LOCAL_QUEUE) or sight.finding(PRIORITY)
    if finding is not None:
        text = f"Kueue does not queue it: {finding.message}"
        return Cause("not-queued", Stage.QUEUE, text, where, finding.fix, frozenset({finding.rule}))
    text = f'it waits for the queue "{sight.queue}", but Kueue has made no Workload of it'
    fix = "Ask your administrator whether Kueue runs, manages this namespace and has MPIJobs among its frameworks."
    return Cause("no-workload", Stage.QUEUE, text, where, fix, LOCAL_QUEUE)


def _of_workload(sight: Sight, workload: Json) -> Iterator[Cause]:
    finished = loose.condition(workload, "Finished")
    if finished.get("status") == "True":
        if loose.text(finished, "reason") not in {"Succeeded", "Failed"} and not sight.finished:
            text = f"Kueue does not retry it: {_message(finished)}"
            fix = "Fix the reported problem and create the job again: Kueue does not retry this one."
            yield _cause(workload, "given-up", text, seen="Finished", fix=fix)
        return
    if loose.holds(workload, "Admitted"):
        return
    if loose.at(workload, "spec", "active") is False:
        reason = _message(loose.condition(workload, "Evicted"))
        fix = f"Set spec.active of Workload {loose.name(workload)} to true, when the reason is fixed."
        text = f"Kueue has deactivated it: {reason or 'spec.active is false'}"
        yield _cause(workload, "deactivated", text, seen="Evicted", fix=fix)
        return
    if loose.holds(workload, "QuotaReserved"):
        yield from _checks(workload)
        return
    yield _pending(sight, workload)


def _checks(workload: Json) -> Iterator[Cause]:
    for check in loose.items(workload, "status", "admissionChecks"):
        state = loose.text(check, "state")
        if state != "Ready":
            name, message = loose.text(check, "name"), cut(loose.text(check, "message"))
            text = (
                f"it has its quota, but the admission check {name} is {state or 'Pending'}{message and ': '}{message}"
            )
            fix = "Ask your administrator about this check: no change to the job helps."
            yield _cause(workload, "admission-check", text, seen="admissionChecks", fix=fix, passes=state != "Rejected")


def _pending(sight: Sight, workload: Json) -> Cause:
    pending = loose.condition(workload, "QuotaReserved")
    message = loose.text(pending, "message")
    evicted = loose.condition(workload, "Evicted")
    was = ""
    if evicted.get("status") == "True" and (why := _EVICTED.get(loose.text(evicted, "reason"))):
        was = f" (it ran: {why})"
    place = _place(sight, workload)
    queue = loose.text(workload, "spec", "queueName")
    if full := _FULL.search(message):
        resource, flavor, lacking = full.groups()
        pod_set = _SET.search(message)
        pods = f" for the {pod_set[1]} pods" if pod_set else ""
        text = f'queue "{queue}" is full: {lacking} {resource} more needed in flavor {flavor}{pods}{was}{place}'
        return _cause(workload, "queue-full", text, seen="QuotaReserved", fix=_WAIT, passes=True)
    if no_flavor := _NO_FLAVOR.search(message):
        text = f'queue "{queue}" could never admit it: the {no_flavor[1]} pods request nothing that the queue covers'
        fix = 'Request cpu for these pods, or "0" of a device such as nvidia.com/gpu if the queue does not cover cpu.'
        return _cause(workload, "queue-never", text, seen="QuotaReserved", fix=fix, rules=EVER_FITS)
    if re.search(
        r"> maximum capacity|unavailable in ClusterQueue|untolerated taint|node affinity|requested level", message
    ):
        text = f'queue "{queue}" could never admit it: {cut(_SET.sub("", message))}'
        fix = "Request less, request resources that the queue has, or use another queue."
        return _cause(workload, "queue-never", text, seen="QuotaReserved", fix=fix, rules=EVER_FITS)
    if pending.get("reason") == "Inadmissible" or re.search(r"exist|inactive|stopped|doesn't match", message):
        finding = sight.finding(LOCAL_QUEUE)  # the finding says why the queue is inactive
        text = f'queue "{queue}" takes no jobs: {finding.message if finding else cut(message)}'
        return _cause(workload, "queue-inactive", text, seen="QuotaReserved", fix=_ASK, rules=LOCAL_QUEUE)
    reason = cut(message) or "Kueue has not processed it yet"
    text = f'it waits in queue "{queue}": {reason}{was}{place}'
    return _cause(workload, "queued", text, seen="QuotaReserved", fix=_WAIT, passes=True)


def _place(sight: Sight, workload: Json) -> str:
    created = loose.moment(workload, "metadata", "creationTimestamp")
    since = f", since {sight.since(created)}" if created else ""
    place = sight.place
    return f"; it is number {place.place} of {place.of} in {place.queue}{since}" if place else since


def _message(condition: Json) -> str:
    return cut(loose.text(condition, "message") or loose.text(condition, "reason"))


def _cause(
    workload: Json, cause: str, text: str, *, seen: str, fix: str, rules: frozenset[str] = _NONE, passes: bool = False
) -> Cause:
    where = f"Workload {loose.name(workload)}, {seen}"
    return Cause(cause, Stage.QUEUE, text, where, fix, rules, passes)
