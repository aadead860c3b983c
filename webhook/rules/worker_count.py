"""The number of workers stays within what the cluster supports.

Distributed training needs at least two workers, and the platform is tested up to one hundred. With
`runLauncherAsWorker` the launcher takes part in the training, so it counts too. The operator also runs launchers by
themselves, without Worker: `min: 0` lets such jobs in.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.kit.settings import RangeRuleSettings
from webhook.rules import Degree, Violation, rule

PATH = "spec.mpiReplicaSpecs[Worker].replicas"


class Settings(RangeRuleSettings):
    """Bounds of the worker count."""

    min: int = Field(2, ge=0, description="Fewest workers a job may ask for; 0 for a launcher by itself.")
    max: int = Field(100, ge=1, description="Most workers a job may ask for.")


@rule("worker-count", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Workers, and the launcher where it is one, against `min` and `max`."""
    launcher = 1 if job.spec.run_launcher_as_worker else 0
    count = job.workers + launcher
    noun = "worker" if count == 1 else "workers"
    asked = f"{count} {noun}{' (the launcher is one of them)' if launcher else ''}"
    if count < settings.min:
        missing = settings.min - launcher
        yield Violation(
            PATH,
            f"{asked}, at least {settings.min} required",
            fix=f"Set replicas to {missing} or more."
            if job.worker is not None
            else f"Add Worker, with replicas: {missing} or more.",
            degree=Degree("too few", -count),
        )
    elif count > settings.max:
        most = settings.max - launcher
        yield Violation(
            PATH,
            f"{asked}, at most {settings.max} allowed",
            fix=f"Set replicas to {most} or fewer." if most else "Set spec.runLauncherAsWorker to false.",
            degree=Degree("too many", count),
        )
