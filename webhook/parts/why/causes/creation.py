"""Pods that the API server rejects because of a quota, a LimitRange, Pod Security, or a missing object.

`refusals.yaml` has the API server's messages and their meanings.
"""

from collections.abc import Iterator

from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut
from webhook.parts.why.causes import logs
from webhook.parts.why.limits import MAX_REJECTION_CHARACTERS
from webhook.parts.why.sight import Json, Sight


def causes(sight: Sight) -> Iterator[Cause]:
    if sight.suspended or sight.finished:
        return
    missing = sight.requested_workers - len(sight.workers)
    if missing > 0:
        pods = f"{missing} of {sight.requested_workers} workers"
        yield from _rejected(_job_events(sight, "worker pod created failed:"), pods)
    if sight.launcher is None:
        yield from _rejected(_job_events(sight, "launcher pod created failed:"), "the launcher")
    elif not sight.launchers:
        events = sight.events_about(loose.name(sight.launcher), "FailedCreate")
        yield from _rejected(events, "the launcher")


def _job_events(sight: Sight, prefix: str) -> Iterator[Json]:
    return (event for event in sight.events_about(sight.name) if loose.text(event, "message").startswith(prefix))


def _rejected(events: Iterator[Json], pods: str) -> Iterator[Cause]:
    """The cause from the newest event: earlier events may be outdated."""
    event = next(events, None)
    if event is None:
        return
    about, message = event.get("involvedObject"), loose.text(event, "message")
    where = f"Event {loose.text(event, 'reason')} of {loose.text(about, 'kind')} {loose.text(about, 'name')}"
    message = message[:MAX_REJECTION_CHARACTERS]
    for refusal in logs.messages("refusals.yaml"):
        if match := refusal.pattern.search(message):
            text = cut(f"{pods} cannot be created, {refusal.text.format(match[1])}")
            yield Cause(refusal.id, Stage.CREATION, text, where, refusal.fix, refusal.rules, refusal.passes)
            return
