"""Pods that the API server refuses to create: quota, LimitRange, Pod Security, a name that leads nowhere.

What it says then, and what that means, is in `refusals.yaml`.
"""

from collections.abc import Iterator

from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut
from webhook.parts.why.causes import logs
from webhook.parts.why.limits import MAX_REJECTION_CHARACTERS
from webhook.parts.why.sight import LAUNCHER, WORKER, Json, Sight


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
    for refusal in logs.messages("refusals.yaml"):
        if found := refusal.pattern.search(message):
            text = cut(f"{whose} cannot be created, {refusal.text.format(found[1])}")
            yield Cause(refusal.id, Stage.CREATION, text, where, refusal.fix, refusal.rules, refusal.passes)
            return
