"""Converts `spec.mpiReplicaSpecs` and other common parts of v1alpha2 and v1."""

from dataclasses import dataclass
from typing import Any, Final

from webhook.api.mpijob import LAUNCHER, WORKER, meant_role
from webhook.api.untyped import mapping
from webhook.converters.fields import containers, copied, drop_unknown, keep, maps, take
from webhook.converters.report import ConversionError, Report
from webhook.parts.older_versions import transport

PATH: Final = "spec.mpiReplicaSpecs"
ROLES: Final = (LAUNCHER, WORKER)
NEVER: Final = "Never"
ON_FAILURE: Final = "OnFailure"
# Fields that only v2beta1 has. A job that was partly converted by hand may have them.
NEW_FIELDS: Final = ("runLauncherAsWorker", "sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `convert mpijob`."""

    gpus_per_node: int | None = None
    """The old operator's flag `--gpus-per-node`, for v1alpha1 jobs."""
    ssh_path: str | None = None
    """Mount path of the SSH keys; None for the operator's default."""
    keep_launcher_small: bool = False
    """Whether GPU requests of the launcher are removed."""


def convert(spec: dict[str, Any], default: str, report: Report) -> dict[str, Any]:
    """Returns both roles in v2beta1. The main container comes first in each role.

    `default` is the old operator's default for `restartPolicy`.
    """
    written = take(spec, "mpiReplicaSpecs", dict, "spec")
    if written is None:
        raise ConversionError(PATH, "is not set, so there is nothing to run")
    main = take(spec, "mainContainer", str, "spec")
    roles: dict[str, Any] = {}
    for key in written:
        if (other := meant_role(key)) and other not in written:
            written = {other if role == key else role: value for role, value in written.items()}
            report.mapped(path(key), f"is {other} now")
    for role in ROLES:
        replica = take(dict(written), role, dict, PATH)
        if replica is not None:
            roles[role] = _role(role, replica, default, main, report)
    for other in written:
        if other not in ROLES:
            report.lost(path(other), "MPIJobs have only a Launcher and Worker")
    if roles.get(WORKER, {}).get("replicas") is None:
        report.to_do(f"{path(WORKER)}.replicas", "was not set, which means no worker: set it")
    if main:
        report.mapped("spec.mainContainer", "is the first container now: the ranks run in the first container")
    return roles


def path(role: str) -> str:
    return f"{PATH}[{role}]"


def _role(role: str, written: dict[str, Any], default: str, main: str | None, report: Report) -> dict[str, Any]:
    where = path(role)
    replica = dict(written)
    new: dict[str, Any] = {}
    keep(replica, new, "replicas")
    new["restartPolicy"] = restart_policy(take(replica, "restartPolicy", str, where), where, default, report)
    template = copied(take(replica, "template", dict, where) or {})
    drop_unknown(replica, where, report)
    pod_containers = containers(template, f"{where}.template")
    position = _position(pod_containers, main, f"{where}.template.spec", report)
    transport.change(role, template, position, f"{where}.template", report)
    if position:
        pod_containers.insert(0, pod_containers.pop(position))
        slept = role == WORKER and "command" not in pod_containers[1]
        runs = ", and runs its own command: the old operator let it sleep" if slept else ""
        first = f"{where}.template.spec.containers[0]"
        report.changed(first, f"is the second container now, since mainContainer names a different container{runs}")
    new["template"] = template
    return new


def _position(pod_containers: list[dict[str, Any]], main: str | None, where: str, report: Report) -> int:
    if not main:
        return 0
    names = [container.get("name") for container in pod_containers]
    if main in names:
        return names.index(main)
    report.to_do(
        f"{where}.containers", f'mainContainer "{main[:100]}" does not exist: put the container with the ranks first'
    )
    return 0


def restart_policy(written: str | None, where: str, default: str, report: Report) -> str:
    field = f"{where}.restartPolicy"
    if not written:
        report.mapped(field, f"was not set; the old operator's default, {default}, is written out")
        return default
    if written in {"Always", "ExitCode"}:
        why = "success ends the pod" if written == "Always" else "no exit code is final"
        report.changed(field, f"{written} is no longer supported, {ON_FAILURE} replaces it: {why}")
        return ON_FAILURE
    return written


def launcher_gpus(launcher: dict[str, Any], options: Options, report: Report) -> str:
    """The first field in which the launcher requests GPUs; empty if there is none.

    With `keep_launcher_small`, the requests are removed and the result is empty.

    GPUs are recognised as in training-operator (`pkg/controller.v1/mpi/mpijob.go`, `isGPULauncher`).
    """
    first = ""
    for number, container in enumerate(maps(launcher.get("template", {}).get("spec"), "containers")):
        where = f"{path(LAUNCHER)}.template.spec.containers[{number}].resources"
        limits = mapping(mapping(container.get("resources")).get("limits"))
        for name in [name for name in limits if "gpu" in name]:
            first = first or where
            if options.keep_launcher_small:
                for amounts in (limits, mapping(container["resources"].get("requests"))):
                    amounts.pop(name, None)
                report.lost(where, f"{name[:100]} is removed: the launcher stays small, and no rank runs on it")
    return "" if options.keep_launcher_small else first
