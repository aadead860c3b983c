"""Pods that the API server refuses to create: quota, LimitRange, Pod Security, a name that leads nowhere."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut
from webhook.parts.why.limits import MAX_REJECTION_CHARACTERS
from webhook.parts.why.sight import LAUNCHER, WORKER, Json, Sight


class _Refusal(NamedTuple):
    """A kind of refusal: what it reads like, and what it means."""

    pattern: re.Pattern[str]
    id: str
    text: str
    fix: str
    rules: frozenset[str] = frozenset()
    passes: bool = False


_REFUSALS: Final = (
    _Refusal(
        re.compile(r"exceeded quota: (?P<said>.*)"),
        "quota",
        "the quota is used up: ResourceQuota {said}",
        "Wait until others end, request less, or ask for a larger quota: kubectl describe resourcequota",
        frozenset({"resource-quota"}),
        passes=True,
    ),
    _Refusal(
        re.compile(r"failed quota: (?P<said>.*)"),
        "quota",
        "the quota counts what the pods do not state: ResourceQuota {said}",
        "State requests or limits of these resources in every container.",
        frozenset({"resource-quota"}),
    ),
    _Refusal(
        re.compile(r"(?P<said>violates PodSecurity .*)"),
        "pod-security",
        "Pod Security rejects the pods:  {said}",
        "Change these fields in the template, or use a namespace with another level.",
        frozenset({"pod-security", "ssh-paths"}),
    ),
    _Refusal(
        re.compile(r"unable to validate against any security context constraint: (?P<said>.*)"),
        "scc",
        "no SCC of OpenShift accepts the pods: {said}",
        "Change these fields in the template, or ask an administrator for an SCC that accepts them.",
        frozenset({"scc"}),
    ),
    _Refusal(
        re.compile(r"(?P<said>(maximum|minimum) .* per (Container|Pod) is .*|.*limit to request ratio.*)"),
        "limit-range",
        "a LimitRange rejects the pods:  {said}",
        "Request an amount within the bounds: kubectl describe limitrange",
        frozenset({"limit-range"}),
    ),
    _Refusal(
        re.compile(r"error looking up service account [^:]*: (?P<said>.*)"),
        "service-account",
        "the pods need what is not there: {said}",
        "Create it, or name another in serviceAccountName.",
        frozenset({"references"}),
    ),
    _Refusal(
        re.compile(r"(?P<said>no PriorityClass with name \S* was found)"),
        "priority-class",
        "the pods need what is not there: {said}",
        "Name a class that exists: kubectl get priorityclasses",
        frozenset({"priority"}),
    ),
    _Refusal(
        re.compile(r'pod rejected: RuntimeClass "(?P<said>[^"]*)" not found'),
        "runtime-class",
        'the pods need what is not there: RuntimeClass "{said}"',
        "Name a class that exists: kubectl get runtimeclasses",
        frozenset({"references"}),
    ),
    _Refusal(
        re.compile(r'admission webhook (?P<said>"[^"]*" denied the request.*)'),
        "denied",
        "an admission webhook rejects the pods:  {said}",
        "Follow its message, or ask the team that runs this webhook.",
    ),
    _Refusal(
        re.compile(r"(?P<said>is invalid: .*)"),
        "template",
        "the API server rejects the pods:  {said}",
        "Correct the template.",
        frozenset({"pod-template"}),
    ),
)
_ANY: Final = _Refusal(
    re.compile("(?P<said>.*)"), "not-created", "the pods are not created: {said}", "Do what the message says."
)


def causes(sight: Sight) -> Iterator[Cause]:
    """The refusals of pods that are missing still."""
    if sight.suspended or sight.finished:
        return
    missing = sight.wanted - len(sight.workers)
    if missing > 0:
        whose = f"{missing} of {sight.wanted} workers"
        yield from _refused(_told(sight, "worker pod created failed:"), whose, sight.tried.get(WORKER))
    tried = sight.tried.get(LAUNCHER)
    if sight.launcher is None:
        yield from _refused(_told(sight, "launcher pod created failed:"), "the launcher", tried)
    elif not sight.launchers:
        found = sight.said(loose.name(sight.launcher), "FailedCreate")
        yield from _refused(found, "the launcher", tried)


def _told(sight: Sight, prefix: str) -> Iterator[Json]:
    return (event for event in sight.said(sight.name) if loose.text(event, "message").startswith(prefix))


def _refused(events: Iterator[Json], whose: str, tried: str | None) -> Iterator[Cause]:
    """The newest of these events, as earlier ones may be out of date; without any, what was said of a pod that was
    `tried`.
    """
    event = next(events, None)
    if event is not None:
        about, message = event.get("involvedObject"), loose.text(event, "message")
        where = f"Event {loose.text(event, 'reason')} of {loose.text(about, 'kind')} {loose.text(about, 'name')}"
    elif tried:
        message, where = tried, "the API server's answer to a dry run of the pod"
    else:
        return
    message = message[:MAX_REJECTION_CHARACTERS]
    for refusal in (*_REFUSALS, _ANY):
        if found := refusal.pattern.search(message):
            text = cut(f"{whose} cannot be created, {refusal.text.format(said=found['said'])}")
            yield Cause(refusal.id, Stage.CREATION, text, where, refusal.fix, refusal.rules, refusal.passes)
            return
