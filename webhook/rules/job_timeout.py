"""A job's time limit is readable, of one opinion, and no longer than the cluster allows.

The limit is the annotation `training.openshift.io/timeout`, which becomes `spec.runPolicy.activeDeadlineSeconds` when
the job is created, or that field itself. A limit above `max` is for those whom RBAC allows to exempt jobs from this
rule: they write `training.openshift.io/exempt: job-timeout` and a reason.

A job without any limit passes, unless `unlimited` is false. That is the default because nobody is without a limit by
accident: the injection `job-timeout` gives every job one, and who leaves it out has to write so into the job, with
`training.openshift.io/timeout-action: notify-only` or `training.openshift.io/skip: job-timeout`, as services that are
meant to run for ever do. Where nobody may run longer than `max` but those whom RBAC allows, set `unlimited: false`:
such a job is then refused too, whatever it skips, unless it is exempt.

A change of the annotation on a job that exists changes nothing, since only the field counts then: that is a warning.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.api import duration
from webhook.api.annotations import NOTIFY_ONLY, TERMINATE, TIMEOUT, TIMEOUT_ACTION, mention
from webhook.api.duration import DurationError
from webhook.api.mpijob import MPIJob
from webhook.kit.admitted import Admitted, Span
from webhook.kit.context import Context
from webhook.kit.settings import DurationOrNone, RuleSettings
from webhook.rules import CauseReason, Degree, Violation, rule

FIELD = "spec.runPolicy.activeDeadlineSeconds"
ANNOTATION = f"metadata.annotations[{TIMEOUT}]"
ACTION = f"metadata.annotations[{TIMEOUT_ACTION}]"


class Settings(RuleSettings):
    """How long a job may run."""

    max: DurationOrNone = Field("7d", description="The longest limit that a job may have, as 72h or 7d; null for any.")

    unlimited: bool = Field(True, description="Whether a job may have no limit at all.")


def admits(settings: Settings) -> Admitted:
    """No limit beyond `max`."""
    return Admitted(seconds=Span(most=None if settings.max is None else duration.parse(settings.max)))


@rule("job-timeout", Settings, since="0.1", admits=admits)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """The annotations by themselves, then against the field, then the limit against `max`."""
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
            yield Violation(ANNOTATION, f"{mention(TIMEOUT, asked)} {error}", "Write it as 90m, 72h or 7d.")
    most = None if settings.max is None else duration.parse(settings.max)
    if wanted is not None and seconds is not None and wanted != seconds:
        beyond = most if most is not None and wanted > most else None
        yield _disagreement(asked or "", wanted, seconds, stored=ctx.operation == "UPDATE", beyond=beyond)
    if seconds is None and not settings.unlimited:
        yield Violation(FIELD, "is missing, and every job has a limit here", _limit(wanted, most), CauseReason.REQUIRED)
    # The annotation becomes the field: of one that says the same it is not known who wrote it.
    longest, path = (wanted, ANNOTATION) if seconds in {None, wanted} else (seconds, FIELD)
    if most is not None and longest is not None and longest > most:
        allowed = _allowed(most if path == FIELD else settings.max)
        if seconds == wanted:
            allowed = f"{settings.max} or less and remove {FIELD} if you wrote it, or ask who may exempt jobs from it"
        yield Violation(
            path,
            f"{longest} s are longer than {settings.max} ({most} s)",
            fix=f"Set it to {allowed}.",
            reason=CauseReason.FORBIDDEN,
            degree=Degree("too long", longest),
        )


def _allowed(most: int | str | None) -> str:
    return f"{most} or less, or ask who may exempt jobs from it"


def _limit(wanted: int | None, most: int | None) -> str:
    """The advice to have a limit, of one opinion with the annotation."""
    if wanted is not None:
        within = most is None or wanted <= most
        return f"Set it to {wanted}, as annotated." if within else "Set it to as many seconds as you annotate instead."
    return "Set it to the seconds that the job may take." if most is None else f"Set it to {_allowed(most)}."


def _disagreement(asked: str, wanted: int, seconds: int, *, stored: bool, beyond: int | None) -> Violation:
    """`beyond`: what the annotation by itself would be refused for, as it is more."""
    if stored:
        fault = f"{mention(TIMEOUT, asked)} changes nothing on a job that exists, which has {seconds} s"
        fix = f"Set {FIELD} to {wanted if beyond is None else _allowed(beyond)}."
        return Violation(ANNOTATION, fault, fix=fix, advisory=True)
    if beyond is not None:
        fault = f"{mention(TIMEOUT, asked)} is {wanted} s, and activeDeadlineSeconds is {seconds}"
        return Violation(ANNOTATION, fault, fix="Remove it.")
    fault = f"is {seconds}, and {mention(TIMEOUT, asked)} is {wanted} s"
    return Violation(FIELD, fault, fix="Remove one of the two.")
