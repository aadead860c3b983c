"""The launcher starts when every worker's sshd answers, for jobs that ask for it.

The annotation `training.openshift.io/worker-readiness: "true"`, or the policy's `byDefault`, injects two things that
only work together: `launcherCreationPolicy: WaitForWorkersReady`, and on the worker's first container a readiness probe
on the port of sshd. Without the probe a worker counts as ready before its sshd listens. With the probe alone, the name
of a worker stays unknown until its sshd listens, and a launcher that starts earlier fails. A loop in the launcher that
waits for its workers, or a high `backoffLimit`, is then not needed.

A readiness probe of the user's stays. `launcherCreationPolicy: AtStartup` is replaced, because it is the field's
default and looks the same; the annotation with `"false"` keeps it. The annotation may name the port of sshd, as
`"2222"`. Otherwise it is read from sshd's options, the worker's `ports` or the launcher's options of ssh; where none of
them shows it, it is the setting `port`. Without that either nothing is injected, and a warning says so: the port stands
in the image, upstream's base image has 2222, and with a probe of another port the launcher would never start.

Jobs that are suspended or queued, or that Kueue itself will queue, get nothing, nor do jobs of which that is not known:
the operator creates their launcher at once, whatever the policy says (mpi-operator issue 615). Nor do jobs whose gang
includes a launcher that does not exist yet (mpi-operator issue 608): `schedulingPolicy.minAvailable` has to be the
number of workers or less. With the annotation the injection `launcher-wait` lets their launcher itself wait. Do not set
`byDefault` where the operator runs with `--gang-scheduling`: nothing in a job shows that. The operator also waits
without a limit, which is why `byDefault` is off.
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
_INIT_CONTAINERS: Final = (*template_path(LAUNCHER), "spec", "initContainers")


class Settings(InjectionSettings):
    """Which jobs get it, and where sshd listens."""

    by_default: bool = Field(False, description="Whether jobs without the annotation get it too.")
    port: int | None = Field(
        None, ge=1, le=65535, description="The port of sshd where a job shows no other; null: such a job gets no probe."
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
    """Inject the probe and the policy, or neither."""
    policy = AT_STARTUP if job.spec.launcher_creation_policy is None else job.spec.launcher_creation_policy
    if (
        not job.workers
        or job.worker is None
        or not job.worker.template.containers
        or policy not in {AT_STARTUP, WAIT_FOR_WORKERS}
    ):
        return
    answer = job.annotations.get(annotations.WORKER_READINESS)
    if answer == "false" or (answer is None and not settings.by_default):
        return
    port = port_of(answer) if answer not in {None, "true"} else sshd.port(job, settings.port)
    own_probe = patch.get(PROBE) is not None
    queued = _is_queued(ctx, patch)
    if problem := _problem(job, answer, queued=queued, port_known=own_probe or port is not None):
        names = [each.get("name") for each in mappings(patch.get(_INIT_CONTAINERS))]
        if answer is not None and sshd.WAIT_CONTAINER not in names:
            yield Caution(problem)
        return
    added = []
    if not own_probe and patch.add(PROBE, _probe(port)):
        added.append(f"a readiness probe on port {port} to the workers")
    if patch.add(POLICY, WAIT_FOR_WORKERS, over=AT_STARTUP):
        added.append(f"launcherCreationPolicy: {WAIT_FOR_WORKERS}")
    if added:
        yield f"added {' and '.join(added)}"


def operator_waits(job: MPIJob, ctx: Context, patch: PatchBuilder, *, asked: bool) -> bool:
    """Whether the operator waits for the workers of this job, in which that was `asked` for or the field says so."""
    wanted = asked or job.spec.launcher_creation_policy == WAIT_FOR_WORKERS
    return wanted and _is_queued(ctx, patch) is False and not _gang_has_launcher(job)


def _is_queued(ctx: Context, patch: PatchBuilder) -> bool | Unknown:
    if patch.get(("spec", "runPolicy", "suspend")):
        return True
    queue = queues.of_job(ctx.view, ctx.namespace, patch.get(("metadata", "labels", QUEUE_NAME)))
    return UNKNOWN if queue is UNKNOWN else bool(queue)


def _gang_has_launcher(job: MPIJob) -> bool:
    gang = job.run_policy.scheduling_policy
    return gang is not None and (gang.min_available is None or gang.min_available > job.workers)


def port_of(answer: str | None) -> int | None:
    """The port that the annotation names."""
    text = answer or ""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0
    return number if 0 < number < 65536 else None


def _problem(job: MPIJob, answer: str | None, *, queued: bool | Unknown, port_known: bool) -> str:
    """Why nothing can be injected, empty when it can."""
    if answer not in {None, "true"} and port_of(answer) is None:
        return f'{annotations.mention(annotations.WORKER_READINESS, answer or "")} is not "true", "false" or a port'
    if queued is UNKNOWN:
        return "nothing added: whether Kueue queues the job is not known"
    if queued:
        return "has no effect on suspended or queued jobs: the operator does not wait for their workers"
    if _gang_has_launcher(job):
        return f"nothing added: with schedulingPolicy, minAvailable has to be {job.workers} or fewer"
    if not port_known:
        return f'sshd\'s port is unknown: declare it in ports, or set {annotations.WORKER_READINESS}: "2222"'
    return ""
