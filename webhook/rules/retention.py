"""A finished job is kept long enough for the operator to notice that it finished.

`ttlSecondsAfterFinished` removes the launcher's Job, not the MPIJob. If that is gone before the operator has seen the
end, the operator makes a new launcher, and the training runs a second time.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.settings import WarningRuleSettings
from webhook.rules import Degree, Violation, rule


class Settings(WarningRuleSettings):
    """How short is too short."""

    min_seconds: int = Field(30, ge=0, description="Seconds below which the job may run twice.")


@rule("retention", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """`ttlSecondsAfterFinished` against `minSeconds`."""
    seconds = job.run_policy.ttl_seconds_after_finished
    if seconds is not None and 0 <= seconds < settings.min_seconds:
        yield Violation(
            "spec.runPolicy.ttlSecondsAfterFinished",
            f"after {seconds} s the job may run a second time",
            fix=f"Set it to {settings.min_seconds} or more.",
            degree=Degree("too short", -seconds),
        )
