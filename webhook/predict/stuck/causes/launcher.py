"""The launcher: what it failed with, how often, and whether it is tried again."""

from collections.abc import Iterator

from msgspec.structs import replace

from webhook.api import duration
from webhook.predict.stuck import loose
from webhook.predict.stuck.cause import Cause, Stage, cut
from webhook.predict.stuck.causes import ends
from webhook.predict.stuck.sight import Json, Sight


def causes(sight: Sight) -> Iterator[Cause]:
    """Its end by the deadline, else what the newest pod that failed ended with."""
    if sight.finished == "Succeeded":
        return
    failed = loose.condition(sight.launcher, "Failed")
    reason = loose.text(failed or loose.condition(sight.job, "Failed"), "reason")
    if reason == "DeadlineExceeded":
        yield _deadline(sight)
        return
    tries = loose.number(sight.launcher, "status", "failed") or 0
    of_pods = (_of_pod(sight, pod) for pod in sight.launchers)
    # One that runs now may have failed before; what it does differently this time nobody knows yet.
    found = next((cause for cause in of_pods if cause), None)
    if found is not None:
        yield replace(found, text=cut(f"the launcher failed{_tries(sight, tries)}: {found.text}"))
    elif sight.finished == "Failed":
        said = loose.condition(sight.job, "Failed")
        text = f"{loose.text(said, 'reason')}: {cut(loose.text(said, 'message'))}"
        yield Cause(
            "failed", Stage.RUN, text, "MPIJob, condition Failed", "Its pods and their logs are gone: create it again."
        )


def _of_pod(sight: Sight, pod: Json) -> Cause | None:
    found = (ends.cause(sight, pod, status, Stage.RUN) for status in loose.items(pod, "status", "containerStatuses"))
    return next((cause for cause in found if cause), None)


def _tries(sight: Sight, tries: int) -> str:
    limit = loose.number(sight.launcher, "spec", "backoffLimit")
    if not tries or limit is None:
        return ""
    times = "once" if tries == 1 else f"{tries} times"
    rest = "not tried again" if tries > limit else f"{limit + 1 - tries} tries left"
    return f" {times} ({rest})"


def _deadline(sight: Sight) -> Cause:
    limit = loose.number(sight.launcher, "spec", "activeDeadlineSeconds")
    limit = limit or loose.number(sight.job, "spec", "runPolicy", "activeDeadlineSeconds")
    span = f" of {duration.spell(limit)}" if limit is not None and limit >= 0 else ""
    text = f"its time was over: it ran into activeDeadlineSeconds{span}"
    fix = "Raise spec.runPolicy.activeDeadlineSeconds, and let the program go on from its last checkpoint."
    return Cause("deadline", Stage.END, text, "Job of the launcher, Failed", fix)
