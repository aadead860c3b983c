"""A job that is being deleted."""

from collections.abc import Iterator

from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage
from webhook.parts.why.sight import Sight


def causes(sight: Sight) -> Iterator[Cause]:
    since = loose.moment(sight.job, "metadata", "deletionTimestamp")
    if since is None:
        return
    written = loose.at(sight.job, "metadata", "finalizers")
    finalizers = ", ".join(map(str, written)) if isinstance(written, list) else ""
    text = f"it is being deleted since {sight.since(since)}{finalizers and f', held by the finalizer {finalizers}'}"
    fix = "Wait. If it takes longer than some minutes, ask the team that runs the finalizer's controller."
    yield Cause("deleted", Stage.DELETION, text, "metadata.deletionTimestamp", fix, passes=True)
