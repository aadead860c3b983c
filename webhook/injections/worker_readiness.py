"""The operator creates the launcher only after the sshd of every worker answers.

The injection is off unless a policy sets `enabled`. It injects `launcherCreationPolicy: WaitForWorkersReady` and, on
the worker's first container, a readiness probe on the port of sshd. The operator then creates no pod of the launcher
until every worker is ready, and has no time limit. Both fields are needed. Without the probe, the operator treats a
worker as ready before its sshd listens. With only the probe, a worker has no resolvable name before its sshd listens,
and a launcher that starts earlier fails. Without this injection, `launcher-wait` lets the launcher itself wait.

A readiness probe of the user stays. `launcherCreationPolicy: AtStartup` is replaced even if the user wrote it: the API
server writes the same value as the default. The annotation `training.openshift.io/worker-readiness` may name the port.
Otherwise the port is read from sshd's options, the worker's `ports` or the launcher's options of ssh, and at last from
the setting `port`. If none of these has a port, nothing is injected: the image sets the port, such as 2222 in
upstream's base image, and with a probe of another port the launcher would never start. A warning reports this, unless
the launcher itself waits.

Nothing is injected into jobs that are suspended or queued, or that Kueue itself may queue. The operator creates the
launcher of these jobs at once and ignores `launcherCreationPolicy` (mpi-operator issue 615). Nothing is injected either
if the gang includes the launcher, because the gang would wait for a launcher that does not exist yet (mpi-operator
issue 608). `schedulingPolicy.minAvailable` must therefore be at most the number of workers. Do not enable the injection
if the operator runs with `--gang-scheduling`, because a job does not show whether the operator has this flag.
"""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import Field

from webhook.api import annotations, sshd
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import AT_STARTUP, LAUNCHER, WAIT_FOR_WORKERS, WORKER, MPIJob
from webhook.api.untyped import at, mappings
from webhook.cluster.view import UNKNOWN, Unknown
from webhook.injections import Caution, injection
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, Form, equal, in_worker
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings
from webhook.predict.kueue import queues

POLICY: Final = ("spec", "launcherCreationPolicy")
PROBE: Final = (*template_path(WORKER), "spec", "containers", 0, "readinessProbe")


class Settings(InjectionSettings):
    """Whether the injection is on, and the port of sshd."""

    enabled: bool = Field(False, description="Whether anything is injected.")
    port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="The port of sshd for jobs that do not set one; null to skip these jobs.",
    )


def _probe(port: object) -> dict[str, object]:
    return {"tcpSocket": {"port": port}, "periodSeconds": 5, "timeoutSeconds": 5}


def _is_ours(_: str, probe: Any) -> bool:
    port = at(probe, "tcpSocket").get("port")
    return type(port) is int and probe == _probe(port)


FORMS: Final = (
    in_worker("spec", "containers", ITEM, "readinessProbe", holds=_is_ours),
    Form(POLICY, equal(WAIT_FOR_WORKERS), ComesBack.WRITTEN_TODAY, default=AT_STARTUP),
)


@injection("worker-readiness", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    policy = AT_STARTUP if job.spec.launcher_creation_policy is None else job.spec.launcher_creation_policy
    if not job.workers or job.worker is None or policy not in {AT_STARTUP, WAIT_FOR_WORKERS}:
        return
    if not job.worker.template.containers or not operator_can_wait(job, ctx, patch):
        return
    port, own_probe = annotated_port(job) or sshd.port(job, settings.port), patch.get(PROBE) is not None
    if not own_probe and not port:
        init_containers = mappings(patch.get((*template_path(LAUNCHER), "spec", "initContainers")))
        if all(container.get("name") != sshd.WAIT_CONTAINER for container in init_containers):
            yield Caution(
                f'sshd\'s port is unknown: declare it in ports, or set {annotations.WORKER_READINESS}: "2222"'
            )
        return
    added = []
    if not own_probe and patch.add(PROBE, _probe(port)):
        added.append(f"a readiness probe on port {port} to the workers")
    if patch.add(POLICY, WAIT_FOR_WORKERS, over=AT_STARTUP):
        added.append(f"launcherCreationPolicy: {WAIT_FOR_WORKERS}")
    if added:
        yield f"added {' and '.join(added)}"


def annotated_port(job: MPIJob) -> int | None:
    text = job.annotations.get(annotations.WORKER_READINESS, "")
    port = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0
    return port if 0 < port < 65536 else None


def operator_can_wait(job: MPIJob, ctx: Context, patch: PatchBuilder) -> bool:
    """Whether `WaitForWorkersReady` has an effect and cannot make the job wait for ever."""
    return _is_queued(ctx, patch) is False and not _gang_has_launcher(job)


def _is_queued(ctx: Context, patch: PatchBuilder) -> bool | Unknown:
    if patch.get(("spec", "runPolicy", "suspend")):
        return True
    queue = queues.of_job(ctx.view, ctx.namespace, patch.get(("metadata", "labels", QUEUE_NAME)))
    return UNKNOWN if queue is UNKNOWN else bool(queue)


def _gang_has_launcher(job: MPIJob) -> bool:
    gang = job.run_policy.scheduling_policy
    return gang is not None and (gang.min_available is None or gang.min_available > job.workers)
