"""The number of workers is within the limits of the policy.

Distributed training needs at least two workers, and the platform is tested with up to one hundred. With
`runLauncherAsWorker` the launcher is included in the number. `min: 0` admits a launcher without workers, which the
operator also runs.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.api.mpijob import WORKER, MPIJob, replica_path
from webhook.kit.advice_bounds import Admitted, Span
from webhook.kit.context import Context
from webhook.kit.settings import RangeRuleSettings
from webhook.predict.sizes import fewer_workers, more_workers
from webhook.rules import Degree, Violation, number_of, rule


class Settings(RangeRuleSettings):
    """Limits of the worker count."""

    min: int = Field(2, ge=0, description="Minimum number of workers; 0 admits a launcher alone.")
    max: int = Field(100, ge=1, description="Maximum number of workers.")


def admits(settings: Settings) -> Admitted:
    return Admitted(workers=Span(settings.min, settings.max))


@rule("worker-count", Settings, since="0.1", admits=admits)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """A misspelt key is read as the key that was meant.

    The rule `upstream-contract` rejects a job without replica specs, and a Worker with zero replicas.
    """
    key = job.misnamed(WORKER) or WORKER
    worker = (job.spec.mpi_replica_specs or {}).get(key)
    workers = max((worker and worker.replicas) or 0, 0)
    if job.spec.mpi_replica_specs is None or (key == WORKER and worker is not None and not workers):
        return
    path = f"{replica_path(key)}.replicas"
    launcher = 1 if job.spec.run_launcher_as_worker else 0
    count = workers + launcher
    described = f"{number_of(count, 'worker')}{' (the launcher is one of them)' if launcher else ''}"
    if count < settings.min:
        yield Violation(
            path,
            f"{described}, at least {settings.min} required",
            fix=more_workers(job, ctx, settings.min - launcher),
            degree=Degree("too few", -count),
        )
    elif count > settings.max:
        if settings.max > launcher:
            fix = fewer_workers(job, ctx, settings.max - launcher)
        else:
            also = f", and replicas to {settings.max} or fewer" if workers > settings.max else ""
            fix = f"Set spec.runLauncherAsWorker to false{also}."
        fault = f"{described}, at most {settings.max} allowed"
        yield Violation(path, fault, fix=fix, degree=Degree("too many", count))
