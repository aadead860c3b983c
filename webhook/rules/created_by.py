"""The annotation with a job's creator is written only by this webhook, never by a user.

The injection `created-by` writes `training.openshift.io/created-by`, which attributes a job and its GPU-hours to a
user. A user could write another name, or change the name while the mutating hook is down. So a new job has either no
such annotation, or the name of the user who creates the job. Users can apply their own exported jobs again. An update
must not change, add or remove the annotation.

A new job from one of the policy's `controllers` may name another user: MultiKueue copies jobs with their annotations.
Programs that restore jobs of other users need an exemption from this rule. Names in jobs that were stored before this
rule was enabled are not checked.
"""

from collections.abc import Iterator
from typing import Final

from webhook.api.annotations import CREATED_BY
from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.settings import RuleSettings
from webhook.rules import CauseReason, Violation, rule, shortened

PATH: Final = f"metadata.annotations[{CREATED_BY}]"


class Settings(RuleSettings):
    """No settings except the action."""


@rule("created-by", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    name = job.annotations.get(CREATED_BY)
    if ctx.operation == "CREATE":
        if name is not None and ctx.username and name != ctx.username and not ctx.by_controller:
            message = f"is {_shown(name)}, but {_shown(ctx.username)} creates the job"
            yield Violation(PATH, message, fix="Remove it: admission writes it.", reason=CauseReason.FORBIDDEN)
        return
    stored = ctx.old.annotations.get(CREATED_BY) if ctx.old is not None else None
    if name == stored:
        return
    if stored is None:
        message, fix = f"{_shown(name or '')} was added to a job that exists", "Remove it."
    else:
        new = "removed" if name is None else f"changed to {_shown(name)}"
        message, fix = f"{_shown(stored)} was {new}", "Restore it."
    yield Violation(PATH, message, fix=fix, reason=CauseReason.FORBIDDEN)


def _shown(name: str) -> str:
    return f'"{shortened(name)}"'
