"""Every job gets a time limit, from its annotation or the default.

The annotation `training.openshift.io/timeout: "72h"` becomes `spec.runPolicy.activeDeadlineSeconds`, which the operator
copies to the launcher's Job. After this time Kubernetes terminates the launcher, and the job fails. The time starts
with the launcher, and starts again after a suspension. For a longer limit, write the annotation or
`activeDeadlineSeconds`: the injection never changes an existing `activeDeadlineSeconds`. With
`training.openshift.io/timeout-action: notify-only` the limit is the maximum of the rule `job-timeout`. If the rule has
no maximum, the job has no limit. In both cases the component `deadline-events` creates an Event when the annotated time
is over.

If the rule `job-timeout` has a maximum and the job has a limit, the longer of the two becomes `activeDeadlineSeconds`
of the workers' template. Workers usually end with the launcher. They keep running with `cleanPodPolicy: None`, after
`kubectl delete --cascade=orphan`, or if the launcher never starts. The time of a worker starts when the worker starts.
Pods with this field are in the quota scope `Terminating`.

No job can skip this injection: the annotation `training.openshift.io/skip` has no effect. A new job that claims to be
owned by a controller, or to be copied by Kueue, gets the limit too, because any user may write the claim. In a real
copy the limit does no harm, because Kueue does not compare `activeDeadlineSeconds`. A job that one of the policy's
`controllers` creates in a cluster with Kueue gets no limit.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from pydantic import Field

from webhook.api import annotations, duration
from webhook.api.mpijob import WORKER, MPIJob
from webhook.injections import Caution, Note, injection
from webhook.kit.context import Context
from webhook.kit.forms import ComesBack, Form
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import DurationOrNone, InjectionSettings

PATH: Final = ("spec", "runPolicy", "activeDeadlineSeconds")
NO_LIMIT = "no limit"


class Settings(InjectionSettings):
    """The limit of jobs without the annotation."""

    default: DurationOrNone = Field(
        "24h",
        description="The time limit of a job without the annotation, such as 90m, 72h or 7d; null for no limit. If the "
        "rule `job-timeout` has a lower maximum, the maximum is used.",
    )


def _seconds(_: str, value: object) -> bool:
    return type(value) is int and 0 < value <= duration.MAX_SECONDS


_OF_WORKERS: Final = (*template_path(WORKER), "spec", PATH[-1])
FORMS: Final = tuple(Form(tuple(map(str, path)), _seconds, ComesBack.ALWAYS) for path in (PATH, _OF_WORKERS))


@injection("job-timeout", Settings, since="0.1", unskippable=True, forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    if job.run_policy.active_deadline_seconds is None:
        yield from _limit_job(job, settings, ctx, patch)
    maximum, limit = ctx.admitted.seconds.most, patch.get(PATH)
    if maximum is not None and limit is not None and job.worker and job.worker.template.containers:
        patch.add(_OF_WORKERS, min(max(maximum, limit), duration.MAX_SECONDS))


def _limit_job(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    action = job.annotations.get(annotations.TIMEOUT_ACTION, annotations.TERMINATE)
    if action == annotations.NOTIFY_ONLY:
        yield from _set_maximum(job, ctx, patch)
        return
    if action != annotations.TERMINATE:
        shown = annotations.mention(annotations.TIMEOUT_ACTION, action)
        yield Caution(f"{shown} is not terminate or notify-only; terminate applies")
    timeout, origin = _default(settings, ctx), f"set {annotations.TIMEOUT} for more"
    if (annotation := job.annotations.get(annotations.TIMEOUT)) is not None:
        try:
            duration.parse(annotation)
            timeout, origin = annotation, "as annotated"
        except duration.DurationError as error:
            yield Caution(
                f"{annotations.mention(annotations.TIMEOUT, annotation)} {error}; {timeout or NO_LIMIT} applies"
            )
            origin = "the default"
    if timeout is None and ctx.old is not None and ctx.old.run_policy.active_deadline_seconds is not None:
        patch.add(PATH, ctx.old.run_policy.active_deadline_seconds)  # an update keeps the job's limit
    if timeout is not None and patch.add(PATH, duration.parse(timeout)):
        seconds = duration.parse(timeout)
        yield Note(f"the job is ended and fails after {timeout} ({seconds} s); {origin}", brief=timeout)


def _set_maximum(job: MPIJob, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    seconds = ctx.admitted.seconds.most
    if seconds is None:
        return
    # A job that is exempt from the rule may have a longer time. The rule rejects an invalid annotation.
    with suppress(duration.DurationError):
        seconds = max(seconds, duration.parse(job.annotations.get(annotations.TIMEOUT, "")))
    if patch.add(PATH, seconds):
        yield Note(
            f"notify-only: the job is ended and fails after {seconds} s, the longest time that is allowed",
            brief=f"{seconds}s",
        )


def _default(settings: Settings, ctx: Context) -> str | None:
    """The policy's default, reduced to the maximum of the rule `job-timeout`."""
    maximum = ctx.admitted.seconds.most
    if settings.default is None or maximum is None or duration.parse(settings.default) <= maximum:
        return settings.default
    return f"{maximum}s"
