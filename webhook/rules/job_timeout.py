"""A job's time limit is readable, the same in both places, and no longer than the cluster allows.

The limit is the annotation `training.openshift.io/timeout`, which becomes `spec.runPolicy.activeDeadlineSeconds` when
the job is created, or that field itself. A limit above `max` is for users whom RBAC allows to exempt jobs from this
rule: they write `training.openshift.io/exempt: job-timeout` and a reason.

With a `max`, no user can have a job without a limit on purpose: it cannot be removed from a job, and a job with
`training.openshift.io/timeout-action: notify-only` has one too. The injection `job-timeout` gives it `max`, and every
other job its default, so that a rejection for a missing limit is rare. Without the injection, a job that does not ask
for a limit may have none. For services that run for ever set `max: null`, or allow the users who run them to exempt
jobs: they annotate a time such as `3650d`.

Pods that are ended get their grace period in addition. `maxGracePeriod` is the longest that a template or one of its
probes may have. Suspending and deleting the job waits as long.

Workers end with the launcher. For the cases in which they would not, such as `cleanPodPolicy: None` or a launcher that
never starts, the injection `job-timeout` sets the `activeDeadlineSeconds` of the Worker template to `max`. A value
above `max` is rejected, and an update may not remove it.

Not guaranteed: each resume, and each pod that a user deletes, starts the clock again. Pods of TrainJobs end with the
TrainJob alone. A user who may create Pods or Jobs needs no MPIJob to run longer.

A change of the annotation on an existing job is a warning: it has no effect, since only the field applies.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.api import duration
from webhook.api.annotations import NOTIFY_ONLY, TERMINATE, TIMEOUT, TIMEOUT_ACTION, mention
from webhook.api.duration import DurationError
from webhook.api.mpijob import WORKER, MPIJob, replica_path
from webhook.api.pod import PodSpec, PodTemplate, Probe
from webhook.kit.advice_bounds import Admitted, Span
from webhook.kit.context import Context
from webhook.kit.settings import DurationOrNone, RuleSettings
from webhook.rules import CauseReason, Degree, Violation, rule

FIELD = "spec.runPolicy.activeDeadlineSeconds"
ANNOTATION = f"metadata.annotations[{TIMEOUT}]"
WORKERS = f"{replica_path(WORKER)}.template.spec.activeDeadlineSeconds"
ACTION = f"metadata.annotations[{TIMEOUT_ACTION}]"


class Settings(RuleSettings):
    """The maximum time of a job."""

    max: DurationOrNone = Field("7d", description="The longest limit that a job may have, as 72h or 7d; null for any.")
    max_grace_period: DurationOrNone = Field(
        "1h", description="The longest terminationGracePeriodSeconds of its pods and probes, as 5m or 1h; null for any."
    )


def admits(settings: Settings) -> Admitted:
    return Admitted(seconds=Span(most=None if settings.max is None else duration.parse(settings.max)))


@rule("job-timeout", Settings, since="0.1", admits=admits)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """The limit of the job, then grace periods and workers, which may run on after it."""
    yield from _limit_of_job(job, settings, ctx)
    yield from _grace_periods(job, settings)
    if settings.max is not None:
        yield from _limit_of_workers(job, settings.max, ctx)


def _limit_of_job(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """The annotations alone, then compared with the field, then the limit compared with `max`."""
    action = job.annotations.get(TIMEOUT_ACTION, TERMINATE)
    if action not in {TERMINATE, NOTIFY_ONLY}:
        fix = f"Use {TERMINATE} or {NOTIFY_ONLY}, or remove it."
        yield Violation(ACTION, f"{mention(TIMEOUT_ACTION, action)} is not known", fix, CauseReason.NOT_SUPPORTED)
    seconds, asked = job.run_policy.active_deadline_seconds, job.annotations.get(TIMEOUT)
    wanted = None
    if asked is not None:
        try:
            wanted = duration.parse(asked)
        except DurationError as error:
            fix = f"Write {meant}." if (meant := duration.meant(asked)) else "Write it as 90m, 72h or 7d."
            yield Violation(ANNOTATION, f"{mention(TIMEOUT, asked)} {error}", fix)
    most = None if settings.max is None else duration.parse(settings.max)
    if seconds == 0:
        yield Violation(FIELD, "is 0 s, so the job fails as soon as it starts", _limit(wanted, None))
    elif wanted is not None and seconds is not None and _disagree(wanted, seconds, action):
        beyond = most if most is not None and wanted > most else None
        yield _disagreement(asked or "", wanted, seconds, stored=ctx.operation == "UPDATE", beyond=beyond)
    if seconds is None and most is not None and _gives_up_its_limit(action, ctx):
        as_annotated = None if action == NOTIFY_ONLY else wanted
        fix = _limit(as_annotated, most)
        yield Violation(FIELD, "is missing; every job needs a time limit", fix, CauseReason.REQUIRED)
    # The annotation becomes the field, so a field with the same value may be the user's or injected.
    longest, path = (wanted, ANNOTATION) if seconds in {None, wanted} else (seconds, FIELD)
    if most is not None and longest is not None and longest > most:
        allowed = _allowed(most if path == FIELD else settings.max)
        if seconds == wanted:
            allowed = f"{settings.max} or less and remove {FIELD} if you wrote it, or ask for an exemption"
        yield Violation(
            path,
            f"{longest} s are longer than {settings.max} ({most} s)",
            fix=f"Set it to {allowed}.",
            reason=CauseReason.FORBIDDEN,
            degree=Degree("too long", longest),
        )


def _grace_periods(job: MPIJob, settings: Settings) -> Iterator[Violation]:
    if settings.max_grace_period is None:
        return
    most = duration.parse(settings.max_grace_period)
    for _, path, replica in job.replicas():
        for place, part in _with_grace_periods(replica.template):
            seconds = part.termination_grace_period_seconds or 0
            if seconds > most:
                field = f"{path}.template.spec{place}.terminationGracePeriodSeconds"
                yield _too_long(field, seconds, settings.max_grace_period, Degree(field, seconds))


def _with_grace_periods(template: PodTemplate) -> Iterator[tuple[str, PodSpec | Probe]]:
    """(path below the pod's spec, part) of the parts that may have their own grace period."""
    if template.spec is not None:
        yield "", template.spec
    for kind, index, container in template.each_container:
        if container.liveness_probe is not None:
            yield f".{kind}[{index}].livenessProbe", container.liveness_probe
        if container.startup_probe is not None:
            yield f".{kind}[{index}].startupProbe", container.startup_probe


def _limit_of_workers(job: MPIJob, longest: str, ctx: Context) -> Iterator[Violation]:
    """The workers of a job with a limit have at most `longest`, or the job's own limit if it may have more."""
    own, limit, most = _own_limit(job), job.run_policy.active_deadline_seconds, duration.parse(longest)
    if limit is None:
        return
    if own is not None and own > max(most, limit):
        yield _too_long(WORKERS, own, longest, Degree("workers", own))
    elif own is None and ctx.old is not None and (before := _own_limit(ctx.old)) is not None:
        fix = f"Set it to {before}, as it was."
        yield Violation(WORKERS, "is missing, and workers keep their limit here", fix, CauseReason.REQUIRED)


def _own_limit(job: MPIJob) -> int | None:
    pod = job.worker and job.worker.template.spec
    return pod.active_deadline_seconds if pod else None


def _too_long(field: str, seconds: int, longest: str, degree: Degree) -> Violation:
    most = duration.parse(longest)
    fault, fix = f"{seconds} s are longer than {longest} ({most} s)", f"Set it to {_allowed(most)}."
    return Violation(field, fault, fix=fix, reason=CauseReason.FORBIDDEN, degree=degree)


def _disagree(wanted: int, seconds: int, action: str) -> bool:
    """With notify-only the job may end later than annotated, but not earlier."""
    return seconds < wanted if action == NOTIFY_ONLY else seconds != wanted


def _gives_up_its_limit(action: str, ctx: Context) -> bool:
    if ctx.old is not None:
        return ctx.old.run_policy.active_deadline_seconds is not None
    return action == NOTIFY_ONLY


def _allowed(most: int | str | None) -> str:
    return f"{most} or less, or ask for an exemption"


def _limit(wanted: int | None, most: int | None) -> str:
    """The advice to set a limit that agrees with the annotation."""
    if wanted is not None:
        within = most is None or wanted <= most
        return f"Set it to {wanted}, as annotated." if within else "Set it to as many seconds as you annotate instead."
    return "Remove it, or set it to the seconds it may take." if most is None else f"Set it to {_allowed(most)}."


def _disagreement(asked: str, wanted: int, seconds: int, *, stored: bool, beyond: int | None) -> Violation:
    """`beyond`: the maximum, if the annotation is above it."""
    if stored:
        fault = f"{mention(TIMEOUT, asked)} has no effect on an existing job, which has {seconds} s"
        fix = f"Set {FIELD} to {wanted if beyond is None else _allowed(beyond)}."
        return Violation(ANNOTATION, fault, fix=fix, advisory=True)
    if beyond is not None:
        fault = f"{mention(TIMEOUT, asked)} is {wanted} s, and activeDeadlineSeconds is {seconds}"
        return Violation(ANNOTATION, fault, fix="Remove it.")
    fault = f"is {seconds}, and {mention(TIMEOUT, asked)} is {wanted} s"
    return Violation(FIELD, fault, fix="Remove one of the two.")
