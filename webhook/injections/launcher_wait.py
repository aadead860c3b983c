"""An init container delays the launcher until every worker's sshd answers, even if the job was queued.

mpirun does not wait for workers. If a worker has no address yet, ssh reports "Could not resolve hostname" and the
launcher fails. The operator's `launcherCreationPolicy: WaitForWorkersReady` has no effect on jobs that are suspended or
queued (mpi-operator issue 615), has no time limit, and can block a gang for ever (mpi-operator issue 608). Instead, the
launcher's pod gets an init container, `wait-for-workers`, with the launcher's image. The container tries ssh to every
host of the operator's hostfile, without logging in: a worker is ready when its sshd sends its host key. The log names
the missing workers. After `timeoutSeconds` the launcher starts without them: mpirun may be able to continue, and
otherwise reports the problem. If the operator keeps the launcher suspended until the workers are ready (mpi-operator
pull request 868), the container ends at once.

The init container needs a shell. With `when: shell` it is injected if the launcher's command is a shell, or if the
workers run sshd in the launcher's image: the operator's default command of a worker is sshd, and sshd rejects a user
whose login shell is missing (OpenSSH `auth.c`, `allowed_user`). So this image has a shell. With `when: ownShell` only
the launcher's command decides, and `when: always` assumes a shell in every image. If the image has no ssh, the launcher
starts at once.

Nothing is injected if waiting could do harm or is not needed:

* the workers have a command that does not show that it starts sshd;
* the launcher writes or mounts a configuration of ssh;
* the job is elastic (`discover_hosts.sh`);
* the user requests an Istio sidecar;
* the operator itself waits: the job has `launcherCreationPolicy: WaitForWorkersReady`, is not queued, and has no gang
  that includes the launcher.

The annotation `training.openshift.io/worker-readiness` overrides these conditions for a job: with `"false"` nothing is
injected, and with `"true"` or the port of sshd the container is injected for every image. Even with the annotation, the
container is left out if the operator waits and the workers have a readiness probe.

The init container has the CPU, memory and storage of the launcher's first container. The requests of the pod stay the
same. The init container has the first container's user, no capability, and no GPU.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from pydantic import Field

from webhook.api import annotations, mpirun, shell, sshd
from webhook.api.mpijob import LAUNCHER, WAIT_FOR_WORKERS, MPIJob
from webhook.api.pod import Container, PodTemplate
from webhook.api.untyped import at, mapping
from webhook.injections import Caution, injection
from webhook.injections.istio import requests_sidecar
from webhook.injections.worker_readiness import PROBE, annotated_port, operator_can_wait
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, in_launcher
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.settings import InjectionSettings

# $1: seconds; $2: an option of ssh with a port, or nothing. A worker is ready if it answers on this port or on the port
# in the image's configuration of ssh. The option -T has no effect here: it stands for "no option".
SCRIPT: Final = """(
command -v ssh >/dev/null || { echo "no ssh in this image: the launcher starts at once"; exit; }
end=$(($(date +%s) + $1))
left=$(while IFS=' :' read -r host _; do
  case ${host%%.*} in '' | *-launcher) ;; *) echo "$host" ;; esac
done </etc/mpi/hostfile)
shown=
while :; do
  missing=
  for host in $left; do
    for option in -T $2; do
      said=$(ssh -n -o BatchMode=yes -o ConnectTimeout=5 -o ConnectionAttempts=1 -o LogLevel=ERROR \\
        -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null \\
        $option -- "$host" true 2>&1)
      case $said in *'resolve hostname'* | *'connect to host'*) ;; *) continue 2 ;; esac
    done
    missing="$missing $host" reason=$said
    [ "$(date +%s)" -lt "$end" ] || break
  done
  [ -n "$missing" ] || break
  if ! [ "$(date +%s)" -lt "$end" ]; then
    echo "no answer within $1 s from$missing ($reason): the launcher starts without"
    exit
  fi
  [ "$missing" = "$shown" ] || echo "waiting for$missing ($reason)"
  shown=$missing left=$missing
  sleep 1
done
echo "every worker answers"
)
exit 0
"""
MOUNT: Final = {"name": "mpi-job-config", "mountPath": mpirun.CONFIG_FOLDER, "readOnly": True}
"""The operator adds the volume (mpi-operator `newLauncherPodTemplate`)."""
NO_GPUS: Final = {"name": "NVIDIA_VISIBLE_DEVICES", "value": ""}
"""The operator sets the same variable for the launcher. Without it, an image for GPUs gets all GPUs of the node."""
_NO_RIGHTS: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_COPIED: Final = ("image", "imagePullPolicy")
_COPIED_RIGHTS: Final = ("runAsUser", "runAsGroup", "runAsNonRoot", "readOnlyRootFilesystem", "seccompProfile")
_AMOUNTS: Final = ("requests", "limits")
_OWN_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_SHELL: Final = "/bin/sh"
_POSIX: Final = shell.SHELLS - {"zsh"}  # zsh does not split $left
# Each alternative begins with a fixed character. With \b before Port, the search would be ten times slower.
_CONFIGURES_SSH: Final = re.compile(r"ssh_config|\.ssh/config|Port(?<!\wPort)[ =]+[\d$]|rsh_agent|ssh_agent")
_ELASTIC: Final = re.compile(r"discover_hosts|--host-discovery-script|--min-n(?:p|um-proc)\b")


class Shells(StrEnum):
    """Selects the jobs that get the init container. A valid annotation of a job overrides this setting."""

    OWN_SHELL = "ownShell"
    SHELL = "shell"
    ALWAYS = "always"


class Settings(InjectionSettings):
    """The launchers that wait, and the time limit."""

    when: Shells = Field(
        Shells.SHELL,
        description="ownShell: if the launcher's command is a shell; shell: also if the workers run sshd in the"
        " launcher's image; or always.",
    )
    timeout_seconds: int = Field(
        600, ge=1, le=86400, description="Seconds after which the launcher starts without the missing workers."
    )


def _is_ours(_: str, container: Any) -> bool:
    # If SCRIPT changes, the old SCRIPT must be recognised too, for updates of existing jobs.
    command = mapping(container).get("command")
    return (
        isinstance(command, list)
        and 5 <= len(command) <= 6
        and all(isinstance(word, str) for word in command)
        and _is_shell(command[0])
        and command[1:4] == ["-c", SCRIPT, sshd.WAIT_CONTAINER]
        and container == _container(container, command)
    )


def _is_copied(name: str, amount: object) -> bool:
    # A `0` of a device is copied, because a LimitRange may add devices by default.
    return not isinstance(amount, dict | list) and (name in _OWN_RESOURCES or ("/" in name and amount in ("0", 0)))


FORMS: Final = (in_launcher("spec", "initContainers", ITEM, holds=_is_ours),)


@injection("launcher-wait", Settings, since="0.1", forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    if not job.workers or job.worker is None or job.launcher is None:
        return
    launcher, worker = job.launcher.template, job.worker.template
    if not launcher.containers or not worker.containers or (launcher.spec and launcher.spec.for_windows):
        return
    annotation = job.annotations.get(annotations.WORKER_READINESS)
    own_port = annotated_port(job)
    if annotation not in {None, "true", "false"} and own_port is None:
        mention = annotations.mention(annotations.WORKER_READINESS, annotation or "")
        yield Caution(f'{mention} is not "true", "false" or a port')
    needed = (
        annotation == "true"
        or own_port
        or (_can_wait(launcher, worker, settings.when) and not requests_sidecar(job, launcher))
    )
    operator_waits = job.spec.launcher_creation_policy == WAIT_FOR_WORKERS and operator_can_wait(job, ctx, patch)
    # Without a probe the operator treats a worker as ready before its sshd listens.
    operator_waits = operator_waits and (annotation is None or patch.get(PROBE) is not None)
    if annotation == "false" or not needed or operator_waits:
        return
    port = own_port or sshd.port(job, None)
    own = patch.get((*template_path(LAUNCHER), "spec", "containers", 0))
    start = [_own_shell(launcher.containers[0]) or _SHELL, "-c", SCRIPT, sshd.WAIT_CONTAINER]
    options = [] if port is None else [f"-p{port}"]
    container = _container(own, [*start, str(settings.timeout_seconds), *options])
    if patch.append((*template_path(LAUNCHER), "spec", "initContainers"), container):
        yield f"the launcher waits for its workers, for {settings.timeout_seconds} s at most"


def _container(own: Any, command: list[str]) -> dict[str, object]:
    """The init container for a launcher with the first container `own`.

    If `own` is itself such an init container, the result is equal to `own`.
    """
    resources = {}
    for field in _AMOUNTS:
        amounts = at(own, "resources", field)
        if copied := {name: amount for name, amount in amounts.items() if _is_copied(name, amount)}:
            resources[field] = copied
    rights = at(own, "securityContext")
    return {
        "name": sshd.WAIT_CONTAINER,
        **{field: own[field] for field in _COPIED if own.get(field) is not None},
        "command": command,
        "env": [NO_GPUS],
        "volumeMounts": [MOUNT],
        **({"resources": resources} if resources else {}),
        "securityContext": {
            **_NO_RIGHTS,
            **{field: rights[field] for field in _COPIED_RIGHTS if rights.get(field) is not None},
        },
    }


def _can_wait(launcher: PodTemplate, worker: PodTemplate, when: Shells) -> bool:
    """Whether waiting is harmless, and the image has a shell as `when` requires."""
    own, of_worker = launcher.containers[0], worker.containers[0]
    if not sshd.starts(of_worker):
        return False
    if "ssh" in " ".join([mount.mount_path for mount in own.volume_mounts or ()]):
        return False
    text = sshd.text(own)
    if ("discover" in text or "--min-n" in text) and _ELASTIC.search(text):
        return False
    if _CONFIGURES_SSH.search("\n".join([text, *[variable.name for variable in own.env or ()]])):
        return False
    return (
        when is Shells.ALWAYS
        or (when is Shells.SHELL and own.image == of_worker.image is not None)
        or bool(_own_shell(own))
    )


def _own_shell(container: Container) -> str:
    """The shell that the container runs; empty if it runs no shell."""
    program = next(iter(shell.unwrapped(container.argv)), "")
    return program if _is_shell(program) else ""


def _is_shell(program: str) -> bool:
    return program.rpartition("/")[2] in _POSIX
