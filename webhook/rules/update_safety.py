"""An update does not break a running job.

When some fields change, the operator rewrites the hostfile and the Service at once, but the running launcher stays as
it is. When other fields change, the operator silently stops handling the job (mpi-operator
`pkg/controller/mpi_job_controller.go`).

These changes are rejected as soon as the operator has started the job, unless the stored job is suspended. If the job
has ended, the change has no effect and is a warning. If Kueue has admitted the job, a change of any field of its
containers is a warning too, because Kueue then stops the job and queues it again.
"""

from collections.abc import Iterator
from typing import Any

from webhook.api import untyped, written
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import MPI_OPERATOR, MPIJob
from webhook.api.untyped import at
from webhook.cluster.owned import Owned
from webhook.cluster.resources.jobs import JOBS, LAUNCHER_SUFFIX
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.kueue.managed import is_there
from webhook.rules import CauseReason, Violation, rule


class Settings(RuleSettings):
    """No settings except the action."""


@rule("update-safety", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    old = ctx.old
    if old is None or old.suspended or not _begun(old, ctx):
        return
    status = old.status
    for path, before, after in _fixed(old, job):
        if before == after:
            continue
        if status.ended:
            yield Violation(path, "a change has no effect: the job has ended", fix="Make a new job.", advisory=True)
            continue
        when = "while the job runs" if status.has("Running") else "after the job's pods were created"
        yield Violation(
            path,
            f"changed from {_shown(before)} to {_shown(after)} {when}, which breaks it",
            fix="Suspend the job first (spec.runPolicy.suspend: true), or make a new one.",
            reason=CauseReason.FORBIDDEN,
        )
    if not status.ended:
        admitted = bool(old.labels.get(QUEUE_NAME)) and not job.suspended and is_there(ctx.view)
        yield from _scaling(old, job, admitted=admitted)
        if admitted:
            yield from _restarting(job, ctx)


def _begun(job: MPIJob, ctx: Context) -> bool:
    """Whether the operator has created something for the job.

    The operator writes the status at the end of its first reconciliation, after it has created the launcher's Job.
    """
    if job.status.conditions:
        return True
    launcher = ctx.view.get(JOBS, (ctx.namespace, f"{job.metadata.name}{LAUNCHER_SUFFIX}"))
    return isinstance(launcher, Owned) and launcher.owner is not None and launcher.owner.uid == job.metadata.uid


def _fixed(old: MPIJob, new: MPIJob) -> Iterator[tuple[str, object, object]]:
    yield "spec.runPolicy.managedBy", _manager(old), _manager(new)
    yield "spec.mpiImplementation", old.spec.mpi_implementation, new.spec.mpi_implementation
    yield "spec.slotsPerWorker", old.spec.slots_per_worker, new.spec.slots_per_worker
    yield "spec.runLauncherAsWorker", bool(old.spec.run_launcher_as_worker), bool(new.spec.run_launcher_as_worker)
    yield "spec.sshAuthMountPath", old.spec.ssh_auth_mount_path, new.spec.ssh_auth_mount_path


def _manager(job: MPIJob) -> str:
    manager = job.run_policy.managed_by
    return MPI_OPERATOR if manager is None else manager


def _scaling(old: MPIJob, new: MPIJob, *, admitted: bool) -> Iterator[Violation]:
    if old.workers == new.workers:
        return
    path = "spec.mpiReplicaSpecs[Worker].replicas"
    if admitted:
        fault = "Kueue stops the job and queues it again when the number of workers changes"
        yield Violation(path, fault, "Undo it unless you want a restart.", advisory=True)
    elif new.workers < old.workers and new.spec.run_launcher_as_worker:
        fault = "with runLauncherAsWorker the operator also restarts one of the workers that stay"
        yield Violation(path, fault, "Expect one more worker to be lost.", advisory=True)


def _restarting(job: MPIJob, ctx: Context) -> Iterator[Violation]:
    """Kueue compares containers and init containers with all their fields (`pkg/util/equality/podset.go`)."""
    before, after = written.templates(ctx.old_document), written.templates(ctx.document)
    for role, path, _ in job.replicas:
        if role in before and role in after and _containers(before[role]) != _containers(after[role]):
            fault, fix = "changed, so Kueue restarts the job", "Undo it to avoid that."
            yield Violation(f"{path}.template", fault, fix, advisory=True)
            return


def _containers(template: bytes) -> list[Any]:
    spec = at(untyped.decode(template), "spec")
    return [spec.get(field) or [] for field in ("containers", "initContainers")]


def _shown(value: object) -> str:
    return f'"{value[:100]}"' if isinstance(value, str) else str(value).lower()
