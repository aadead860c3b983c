"""A job stays within its tier, the limits for a group of namespaces.

A policy with a namespace selector assigns a tier to namespaces, such as those with the label
`training.openshift.io/tier: premium` (tenants must not be able to change it). The settings of this rule are the tier's
limits. A limit that is not set does not apply. The rules `worker-count`, `gpus` and `mpi-implementation` have the
limits of the whole platform.

A tier may exclude three features. `runLauncherAsWorker` is the field of this name. `gangScheduling` is the annotation
for Volcano's queue, and any field of `spec.runPolicy.schedulingPolicy` except the priority. `priorityScheduling` is any
PriorityClass, and any WorkloadPriorityClass of Kueue. The class `default`, which Kueue itself sets, is always allowed.

The limits apply to one job. Use a ResourceQuota or Kueue to limit the number of jobs. The rule `gpus` reports GPUs that
a container gets without a request.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator

from webhook.api.accelerators import DEFAULT_ACCELERATORS
from webhook.api.kueue import PRIORITY_CLASS
from webhook.api.mpijob import IMPLEMENTATIONS, VOLCANO_QUEUE, MPIJob, SchedulingPolicy
from webhook.kit.advice_bounds import Admitted, Span
from webhook.kit.context import Context
from webhook.kit.settings import ResourceNames, RuleSettings
from webhook.predict.devices import of_each
from webhook.predict.kueue.priority import priority_classes
from webhook.predict.sizes import fewer_workers
from webhook.rules import CauseReason, Degree, Violation, number_of, rule
from webhook.rules.gpus import uncounted
from webhook.rules.priority import LABEL

WORKERS = "spec.mpiReplicaSpecs[Worker].replicas"
LAUNCHER_AS_WORKER = "spec.runLauncherAsWorker"
# Kueue sets this class if it exists and the user names no class (feature gate `WorkloadPriorityClassDefaulting`).
KUEUE_DEFAULT = "default"
ASK = "ask your administrator for another tier"

Feature = Literal["runLauncherAsWorker", "gangScheduling", "priorityScheduling"]


class Settings(RuleSettings):
    """The limits of the tier; null for no limit."""

    name: str = Field("", max_length=40, description="The tier's name, for the messages.")
    max_workers: int | None = Field(
        None, ge=2, description="Maximum number of workers, including a launcher that also computes."
    )
    max_gpus: int | None = Field(
        None, ge=0, description="Maximum number of accelerators of a whole job, launcher and workers."
    )
    resources: ResourceNames = Field(
        DEFAULT_ACCELERATORS, description="Names of resources that are accelerators, as in the rule `gpus`."
    )
    implementations: tuple[Literal["OpenMPI", "Intel", "MPICH"], ...] | None = Field(
        None, min_length=1, description="The MPI implementations of the tier."
    )
    features: tuple[Feature, ...] | None = Field(
        None, description="The features of the tier: runLauncherAsWorker, gangScheduling and priorityScheduling."
    )

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("has characters that cannot be shown")
        return name

    @property
    def tier(self) -> str:
        """The tier as the subject of a sentence."""
        return f'the tier "{self.name}"' if self.name else "your tier"


def admits(settings: Settings) -> Admitted:
    return Admitted(workers=Span(0, settings.max_workers), job_gpus=Span(0, settings.max_gpus))


@rule("tier", Settings, since="0.1", admits=admits)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    if settings.max_workers is not None:
        yield from _workers(job, settings.max_workers, settings, ctx)
    if settings.max_gpus is not None:
        yield from _gpus(job, settings.max_gpus, settings, ctx)
    yield from _implementation(job, settings)
    if settings.features is not None:
        for feature, path in _used(job):
            if feature not in settings.features:
                yield _without(feature, path, settings)


def _workers(job: MPIJob, most: int, settings: Settings, ctx: Context) -> Iterator[Violation]:
    launcher = 1 if job.spec.run_launcher_as_worker else 0
    count = job.workers + launcher
    if count > most:
        described = f"{count} workers{' (the launcher is one of them)' if launcher else ''}"
        yield Violation(
            WORKERS,
            f"{described}, {settings.tier} allows at most {most}",
            fix=f"{fewer_workers(job, ctx, most - launcher).removesuffix('.')}, or {ASK}.",
            reason=CauseReason.FORBIDDEN,
            degree=Degree("workers", count),
        )


def _gpus(job: MPIJob, most: int, settings: Settings, ctx: Context) -> Iterator[Violation]:
    launcher, per_worker = (of_each(replica, settings.resources, ctx) for replica in (job.launcher, job.worker))
    total = launcher + job.workers * per_worker
    if total <= most:
        for _, path, replica in job.replicas:
            yield from uncounted(path, replica.template, settings.resources, ctx)
        return
    parts = [f"{per_worker} in each of {job.workers} workers"] * bool(job.workers * per_worker)
    parts += [f"{launcher} in the launcher"] * bool(launcher)
    yield Violation(
        "spec.mpiReplicaSpecs",
        f"{number_of(total, 'GPU')} ({', '.join(parts)}), {settings.tier} allows at most {most} in a job",
        fix=f"Request {most} or fewer in all, or {ASK}." if most else f"Request none, or {ASK}.",
        reason=CauseReason.FORBIDDEN,
        degree=Degree("GPUs", total),
    )


def _implementation(job: MPIJob, settings: Settings) -> Iterator[Violation]:
    """The rule `upstream-contract` reports unknown implementations."""
    value, included = job.spec.mpi_implementation, settings.implementations
    if included is None or value in included or value not in IMPLEMENTATIONS:
        return
    listed = ", ".join(included)
    yield Violation(
        "spec.mpiImplementation",
        f'"{value}" is not in {settings.tier}, which has {listed}',
        fix=f"Use {'one of ' if len(included) > 1 else ''}{listed}, or {ASK}.",
        reason=CauseReason.FORBIDDEN,
    )


def _used(job: MPIJob) -> Iterator[tuple[Feature, str]]:
    if job.spec.run_launcher_as_worker:
        yield "runLauncherAsWorker", LAUNCHER_AS_WORKER
    policy = job.run_policy.scheduling_policy or SchedulingPolicy()
    gang = {
        "minAvailable": policy.min_available,
        "queue": policy.queue or None,
        "minResources": policy.min_resources,
        "scheduleTimeoutSeconds": policy.schedule_timeout_seconds,
    }
    for field, value in gang.items():
        if value is not None:
            yield "gangScheduling", f"spec.runPolicy.schedulingPolicy.{field}"
    if job.annotations.get(VOLCANO_QUEUE):
        yield "gangScheduling", f"metadata.annotations[{VOLCANO_QUEUE}]"
    if (job.labels.get(PRIORITY_CLASS) or KUEUE_DEFAULT) != KUEUE_DEFAULT:
        yield "priorityScheduling", LABEL
    for path, _ in priority_classes(job):
        yield "priorityScheduling", path


def _without(feature: Feature, path: str, settings: Settings) -> Violation:
    included = ", ".join(settings.features or ()) or "no optional features"
    return Violation(
        path,
        f"{feature} is not in {settings.tier}, which has {included}",
        fix=f"Set it to false, or {ASK}." if path == LAUNCHER_AS_WORKER else f"Remove it, or {ASK}.",
        reason=CauseReason.FORBIDDEN,
    )
