"""The launcher's Job is kept until the operator sees its end. Optionally, the launcher's log is kept after a failure.

`ttlSecondsAfterFinished` deletes the launcher's Job, not the MPIJob. If the Job is deleted before the operator has seen
its end, the operator creates a new launcher, and the training runs a second time.

With `restartPolicy: OnFailure`, the operator's default, Kubernetes deletes the launcher's pod and its log when
`backoffLimit` is reached (kubernetes `pkg/controller/job`, `deleteActivePods`). Nearly every job has this default, so
this rule warns only if the policy sets `launcherLog`.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.api.mpijob import LAUNCHER, MPIJob, replica_path
from webhook.kit.context import Context
from webhook.kit.settings import WarningRuleSettings
from webhook.rules import Degree, Violation, rule


class Settings(WarningRuleSettings):
    """The minimum time, and whether a lost log is reported."""

    min_seconds: int = Field(30, ge=0, description="The minimum in seconds. Below it, the job may run twice.")
    launcher_log: bool = Field(False, description="Also report a launcher whose log is deleted after a failure.")


@rule("retention", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    seconds = job.run_policy.ttl_seconds_after_finished
    if seconds is not None and 0 <= seconds < settings.min_seconds:
        yield Violation(
            "spec.runPolicy.ttlSecondsAfterFinished",
            f"after {seconds} s the job may run a second time",
            fix=f"Set it to {settings.min_seconds} or more.",
            degree=Degree("too short", -seconds),
        )
    if settings.launcher_log and job.launcher is not None and job.launcher.restart_policy == "OnFailure":
        fault = "the log is deleted at backoffLimit"
        yield Violation(f"{replica_path(LAUNCHER)}.restartPolicy", fault, fix="Set it to Never.", advisory=True)
