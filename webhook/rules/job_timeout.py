"""A job's time limit is valid, the same in annotation and field, and not above the cluster's maximum.

A user writes the limit as annotation `training.openshift.io/timeout`, which becomes
`spec.runPolicy.activeDeadlineSeconds` when the job is created, or as the field itself. A limit above `max` needs an
exemption: a user with the right to exempt writes `training.openshift.io/exempt: job-timeout` and a reason. A later
change of the annotation is a warning, because only the field applies.

With a `max`, an update cannot remove the limit, and a job with `training.openshift.io/timeout-action: notify-only` must
have one. The injection `job-timeout` sets a missing limit: to `max` with `notify-only`, else to the injection's
default. If the injection is off, a new job without `notify-only` may have no limit. For services that run for ever set
`max: null`, or allow users to exempt jobs and annotate a time such as `3650d`.

Pods that are terminated, suspended or deleted get their grace period in addition to the limit. `maxGracePeriod` limits
the grace periods of a template and its probes.

With `cleanPodPolicy: None`, workers keep running after the launcher has ended. If the launcher never starts, workers
run without it. So the injection `job-timeout` sets the `activeDeadlineSeconds` of the Worker template to `max`. This
rule rejects a value above `max`, and an update that removes the value.

A job can still run longer than `max`: the time starts again with each resume, and with each new pod after a user has
deleted a pod. Pods of TrainJobs end only with the TrainJob. A user who may create Pods or Jobs can run them without an
MPIJob, and without its limit.
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

    max: DurationOrNone = Field(
        "7d", description="The maximum time limit of a job, such as 72h or 7d; null for no maximum."
    )
    max_grace_period: DurationOrNone = Field(
        "1h", description="The maximum grace period of pods and probes, such as 5m or 1h; null for no maximum."
    )


def admits(settings: Settings) -> Admitted:
    return Admitted(seconds=Span(most=None if settings.max is None else duration.parse(settings.max)))


@rule("job-timeout", Settings, since="0.1", admits=admits)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    yield from _limit_of_job(job, settings, ctx)
    if settings.max_grace_period is not None:
        yield from _grace_periods(job, settings.max_grace_period)
    if settings.max is not None and job.run_policy.active_deadline_seconds is not None:
        yield from _limit_of_workers(job, settings.max, job.run_policy.active_deadline_seconds, ctx)


def _limit_of_job(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    action = job.annotations.get(TIMEOUT_ACTION, TERMINATE)
    if action not in {TERMINATE, NOTIFY_ONLY}:
        fix = f"Use {TERMINATE} or {NOTIFY_ONLY}, or remove it."
        yield Violation(ACTION, f"{mention(TIMEOUT_ACTION, action)} is not known", fix, CauseReason.NOT_SUPPORTED)
    seconds, annotation = job.run_policy.active_deadline_seconds, job.annotations.get(TIMEOUT)
    annotated = None
    if annotation is not None:
        try:
            annotated = duration.parse(annotation)
        except DurationError as error:
            fix = f"Write {meant}." if (meant := duration.meant(annotation)) else "Write it as 90m, 72h or 7d."
            yield Violation(ANNOTATION, f"{mention(TIMEOUT, annotation)} {error}", fix)
    most = None if settings.max is None else duration.parse(settings.max)
    if seconds == 0:
        yield Violation(FIELD, "is 0 s, so the job fails as soon as it starts", _limit(annotated, None))
    elif annotated is not None and seconds is not None and _disagree(annotated, seconds, action):
        beyond = most if most is not None and annotated > most else None
        yield _disagreement(annotation or "", annotated, seconds, stored=ctx.operation == "UPDATE", beyond=beyond)
    if seconds is None and most is not None and _gives_up_its_limit(action, ctx):
        as_annotated = None if action == NOTIFY_ONLY else annotated
        fix = _limit(as_annotated, most)
        yield Violation(FIELD, "is missing; every job needs a time limit", fix, CauseReason.REQUIRED)
    # If annotation and field are equal, either the user or the injection wrote the field.
    longest, path = (annotated, ANNOTATION) if seconds is None or seconds == annotated else (seconds, FIELD)
    if most is not None and longest is not None and longest > most:
        allowed = _allowed(most if path == FIELD else settings.max)
        if seconds == annotated:
            allowed = f"{settings.max} or less and remove {FIELD} if you wrote it, or ask for an exemption"
        yield Violation(
            path,
            f"{longest} s are longer than {settings.max} ({most} s)",
            fix=f"Set it to {allowed}.",
            reason=CauseReason.FORBIDDEN,
            degree=Degree("too long", longest),
        )


def _grace_periods(job: MPIJob, longest: str) -> Iterator[Violation]:
    most = duration.parse(longest)
    for _, path, replica in job.replicas:
        for place, part in _with_grace_periods(replica.template):
            seconds = part.termination_grace_period_seconds or 0
            if seconds > most:
                field = f"{path}.template.spec{place}.terminationGracePeriodSeconds"
                yield _too_long(field, seconds, longest, Degree(field, seconds))


def _with_grace_periods(template: PodTemplate) -> list[tuple[str, PodSpec | Probe]]:
    """(path below the pod's spec, part that has a grace period)"""
    parts: list[tuple[str, PodSpec | Probe]] = [] if template.spec is None else [("", template.spec)]
    for kind, index, container in template.each_container:
        if container.liveness_probe is not None:
            parts.append((f".{kind}[{index}].livenessProbe", container.liveness_probe))
        if container.startup_probe is not None:
            parts.append((f".{kind}[{index}].startupProbe", container.startup_probe))
    return parts


def _limit_of_workers(job: MPIJob, longest: str, limit: int, ctx: Context) -> Iterator[Violation]:
    """The workers' limit must not exceed the longer of `longest` and the job's `limit`. An update must keep it."""
    of_workers = _own_limit(job)
    if of_workers is not None and of_workers > max(duration.parse(longest), limit):
        yield _too_long(WORKERS, of_workers, longest, Degree("workers", of_workers))
    elif of_workers is None and ctx.old is not None and (before := _own_limit(ctx.old)) is not None:
        fix = f"Set it to {before}, as it was."
        yield Violation(WORKERS, "is missing, and workers keep their limit here", fix, CauseReason.REQUIRED)


def _own_limit(job: MPIJob) -> int | None:
    pod = job.worker and job.worker.template.spec
    return pod.active_deadline_seconds if pod else None


def _too_long(field: str, seconds: int, longest: str, degree: Degree) -> Violation:
    most = duration.parse(longest)
    fault, fix = f"{seconds} s are longer than {longest} ({most} s)", f"Set it to {_allowed(most)}."
    return Violation(field, fault, fix=fix, reason=CauseReason.FORBIDDEN, degree=degree)


def _disagree(annotated: int, seconds: int, action: str) -> bool:
    """With `notify-only` the job may end later than the annotated time, but not earlier."""
    return seconds < annotated if action == NOTIFY_ONLY else seconds != annotated


def _gives_up_its_limit(action: str, ctx: Context) -> bool:
    if ctx.old is not None:
        return ctx.old.run_policy.active_deadline_seconds is not None
    return action == NOTIFY_ONLY


def _allowed(most: int | str | None) -> str:
    return f"{most} or less, or ask for an exemption"


def _limit(annotated: int | None, most: int | None) -> str:
    if annotated is not None:
        within = most is None or annotated <= most
        return (
            f"Set it to {annotated}, as annotated." if within else "Annotate a shorter time and write its seconds here."
        )
    return "Remove it, or set it to the seconds it may take." if most is None else f"Set it to {_allowed(most)}."


def _disagreement(annotation: str, annotated: int, seconds: int, *, stored: bool, beyond: int | None) -> Violation:
    """`beyond` is the maximum if the annotation is above the maximum, else None."""
    if stored:
        fault = f"{mention(TIMEOUT, annotation)} has no effect on an existing job, which has {seconds} s"
        fix = f"Set {FIELD} to {annotated if beyond is None else _allowed(beyond)}."
        return Violation(ANNOTATION, fault, fix=fix, advisory=True)
    if beyond is not None:
        fault = f"{mention(TIMEOUT, annotation)} is {annotated} s, and activeDeadlineSeconds is {seconds}"
        return Violation(ANNOTATION, fault, fix="Remove it.")
    fault = f"is {seconds}, and {mention(TIMEOUT, annotation)} is {annotated} s"
    return Violation(FIELD, fault, fix="Remove one of the two.")
