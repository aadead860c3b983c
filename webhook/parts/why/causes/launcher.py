"""The launcher: its failure, the number of failures, and whether it is retried."""

from collections.abc import Iterator
from contextlib import suppress

from msgspec.structs import replace

from webhook.api import duration
from webhook.api.annotations import INJECTED, TIMEOUT, mention
from webhook.parts.why import loose
from webhook.parts.why.cause import Cause, Stage, cut
from webhook.parts.why.causes import ends, logs
from webhook.parts.why.sight import Json, Sight


def causes(sight: Sight) -> Iterator[Cause]:
    if sight.finished == "Succeeded":
        return
    failed = loose.condition(sight.launcher, "Failed")
    reason = loose.text(failed or loose.condition(sight.job, "Failed"), "reason")
    if reason == "DeadlineExceeded":
        yield _deadline(sight)
        return
    tries = loose.number(sight.launcher, "status", "failed") or 0
    of_pods = (_of_pod(sight, pod) for pod in sight.launchers)
    # Older pods are considered too: the newest pod may be running.
    cause = next(filter(None, of_pods), None)
    if cause is not None:
        yield replace(cause, text=cut(f"the launcher failed{_tries(sight, tries)}: {cause.text}"))
    elif sight.finished == "Failed":
        condition = loose.condition(sight.job, "Failed")
        text = f"{loose.text(condition, 'reason')}: {cut(loose.text(condition, 'message'))}"
        fix = "Its pods and their logs are gone: create it again."
        if reason.startswith("BackoffLimitExceeded") and _loses_log(sight):
            text = f"{text}; the pod of the launcher was deleted with its log when its tries were used up"
            fix = (
                "Set spec.mpiReplicaSpecs[Launcher].restartPolicy to Never and create the job again: failed launchers "
                "then stay with their logs. "
                "The default, OnFailure, deletes the pod at spec.runPolicy.backoffLimit."
            )
        yield Cause("failed", Stage.RUN, text, "MPIJob, condition Failed", fix)


def _loses_log(sight: Sight) -> bool:
    """Whether the launcher's log is lost. With OnFailure the Job controller deletes the pod at backoffLimit."""
    of_job = loose.text(sight.launcher, "spec", "template", "spec", "restartPolicy")
    return "Never" not in {of_job, loose.text(sight.job, "spec", "mpiReplicaSpecs", "Launcher", "restartPolicy")}


def _of_pod(sight: Sight, pod: Json) -> Cause | None:
    causes = (ends.cause(sight, pod, status, Stage.RUN) for status in loose.items(pod, "status", "containerStatuses"))
    cause = next(filter(None, causes), None)
    return _of_sshd(sight, cause) if cause and cause.id in logs.OF_SSHD else cause


def _of_sshd(sight: Sight, cause: Cause) -> Cause:
    """The cause from the log of a worker's sshd, if sshd ended the connection; otherwise `cause`."""
    for name in map(loose.name, sight.workers):
        message = logs.find(sight.logs.get(name, ""))
        if message and message.id in logs.BY_SSHD:
            return Cause(message.id, cause.stage, message.text, f"log of Pod {name}", message.fix, message.rules)
    return cause


def _tries(sight: Sight, failed: int) -> str:
    """The failures and the remaining tries. Restarts of a container and failed pods count as tries."""
    limit = loose.number(sight.launcher, "spec", "backoffLimit")
    statuses = loose.items(next(iter(sight.launchers), None), "status", "containerStatuses")
    restarts = max((loose.number(status, "restartCount") or 0 for status in statuses), default=0)
    tries = max(failed, restarts)
    if not tries or limit is None:
        return ""
    times = "once" if tries == 1 else f"{tries} times"
    if failed > limit or sight.finished:
        return f" {times} (not tried again)"
    left = max(0, limit - tries if restarts else limit + 1 - tries)
    rest = f"{left} tries left" if left != 1 else "1 try left"
    return f" {times} ({rest}{', then its pod is deleted with its log' if restarts and _loses_log(sight) else ''})"


def _deadline(sight: Sight) -> Cause:
    limit = loose.number(sight.launcher, "spec", "activeDeadlineSeconds")
    limit = limit or loose.number(sight.job, "spec", "runPolicy", "activeDeadlineSeconds")
    span = f" of {duration.spell(limit)}" if limit is not None and limit >= 0 else ""
    text, field = f"its time limit was exceeded: activeDeadlineSeconds{span}", "spec.runPolicy.activeDeadlineSeconds"
    written = loose.mapping(sight.job, "metadata", "annotations")
    requested, injected = loose.text(written, TIMEOUT), loose.text(written, INJECTED).split(",")
    with suppress(duration.DurationError):
        if requested and duration.parse(requested) == limit:
            text, field = f"{text}, from the annotation {mention(TIMEOUT, requested)}", f"the annotation {TIMEOUT}"
    if not requested and "job-timeout" in injected:
        text, field = f"{text}, the default of the policy", f"it by the annotation {TIMEOUT}"
    fix = f"Raise {field}, and let the program continue from its last checkpoint."
    return Cause("deadline", Stage.END, text, "Job of the launcher, Failed", fix)
