"""Builds the MPIJob with the same pods as a TrainJob or an MPI runtime."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from webhook.api import mpijob, untyped
from webhook.api.kueue import without_kueues
from webhook.api.mpijob import LAUNCHER, WORKER, replica_path
from webhook.api.untyped import at, mapping, mappings
from webhook.parts.trainer import kinds
from webhook.parts.trainer.places import Place, Places
from webhook.parts.trainer.replicated_jobs import (
    JOB_SET,
    ReplicatedJob,
    check_others,
    claim_templates,
    launcher_is_node,
    replicated_jobs,
    slots,
)
from webhook.parts.trainer.resources import TrainingRuntime

ROLES: Final = {kinds.LAUNCHER: LAUNCHER, kinds.NODE: WORKER}
# JobSet's default.
_RESTART_POLICY: Final = "OnFailure"
# The status of an ended MPIJob. Rules ignore the time.
_ENDED: Final = {
    "status": {
        "conditions": [{"type": "Succeeded", "status": "True"}],
        "completionTime": "1970-01-01T00:00:00Z",
    }
}
# Args of workers without a command. Without args, rules would assume that the worker runs sshd, as with mpi-operator.
_OF_THE_IMAGE: Final = ["(entrypoint)"]


@dataclass(frozen=True, slots=True)
class OtherPods:
    """A replicated job that is neither the launcher nor the nodes. Rules judge it like the launcher of an MPIJob."""

    path: str
    """Replaces the launcher's path in violations."""
    document: bytes


@dataclass(frozen=True, slots=True)
class Shape:
    """The equivalent MPIJob, and the parts of the TrainJob and the runtime that the MPIJob lacks."""

    document: bytes
    others: list[OtherPods]
    places: Places
    jobs: list[ReplicatedJob]
    runtime: dict[str, Any]
    """The runtime's spec."""
    job: dict[str, Any]
    """The TrainJob's spec; empty for a runtime."""
    metadata: dict[str, Any]

    def replicated_job(self, name: str) -> ReplicatedJob | None:
        return next((job for job in self.jobs if job.name == name), None)


def of_runtime(document: dict[str, Any]) -> Shape | None:
    """The shape of a runtime; None if it has no MPI policy or no nodes. TooLarge if other pods are too large."""
    return _shape(mapping(document.get("spec")), {}, mapping(document.get("metadata")), _runtimes_places(), "")


def of_train_job(document: dict[str, Any], runtime: TrainingRuntime) -> Shape | None:
    """The shape of a TrainJob; None if its runtime has no shape. TooLarge if the merge is too large."""
    if not runtime.spec:
        return None
    kind = kinds.RUNTIME if runtime.namespace else kinds.CLUSTER_RUNTIME
    places = {path: place._replace(in_runtime=True) for path, place in _runtimes_places().items()} | {
        f"{replica_path(WORKER)}.replicas": Place("spec.trainer.numNodes"),
        "spec.slotsPerWorker": Place("spec.trainer.numProcPerNode"),
        "spec.runPolicy": Place("spec"),
    }
    return _shape(
        untyped.decode(runtime.spec),
        mapping(document.get("spec")),
        mapping(document.get("metadata")),
        places,
        f"{kind} {runtime.name}",
        ended=_ended(document),
    )


def _runtimes_places() -> dict[str, Place]:
    return {
        f"{replica_path(WORKER)}.replicas": Place("spec.mlPolicy.numNodes"),
        "spec.slotsPerWorker": Place("spec.mlPolicy.mpi.numProcPerNode"),
        "spec.runLauncherAsWorker": Place("spec.mlPolicy.mpi.runLauncherAsNode"),
        "spec.sshAuthMountPath": Place("spec.mlPolicy.mpi.sshAuthMountPath"),
        "spec.mpiImplementation": Place("spec.mlPolicy.mpi.mpiImplementation"),
        "spec.mpiReplicaSpecs": Place(f"{JOB_SET}.replicatedJobs"),
        JOB_SET: Place(JOB_SET),
    }


def _shape(
    runtime: dict[str, Any],
    job: dict[str, Any],
    metadata: dict[str, Any],
    places: dict[str, Place],
    name: str,
    *,
    ended: bool = False,
) -> Shape | None:
    policy = at(runtime, "mlPolicy").get("mpi")
    if not isinstance(policy, dict):
        return None
    jobs = replicated_jobs(runtime, job)
    if all(replicated.name != kinds.NODE for replicated in jobs):
        return None
    specs: dict[str, Any] = {}
    claims = [name for _, name in claim_templates(at(runtime, "template", "spec"))]
    others: list[tuple[str, dict[str, Any]]] = []
    size = 0
    for replicated in jobs:
        role = ROLES.get(replicated.name)
        # The path of other pods contains their number in place of a role's name.
        path = replica_path(role or str(replicated.index))
        template = _template(replicated, role, path, places, in_runtime=bool(name))
        mounted = set(replicated.mounts)
        volumes = [name for name in claims if name in mounted]
        volumes += [kinds.KEY_VOLUME, kinds.HOSTFILE_VOLUME] if role else []
        volumes += replicated.mounts if not name else []  # a TrainJob's patches may add these volumes
        template["spec"]["volumes"] = _volumes(template["spec"].get("volumes"), volumes)
        replica = {
            "replicas": replicated.replicas * replicated.pods if role == WORKER else 1,
            "restartPolicy": at(replicated.template, "spec").get("restartPolicy") or _RESTART_POLICY,
            "template": template,
        }
        if role:
            specs[role] = replica
        else:
            others.append((path, replica))
            size += len(msgspec.json.encode(replicated.template))
            check_others(size, of_job=bool(name))
    as_node = launcher_is_node(runtime)
    manager = job.get("managedBy")
    run_policy = {
        "suspend": job.get("suspend"),
        "activeDeadlineSeconds": job.get("activeDeadlineSeconds"),
        "managedBy": None if manager == kinds.CONTROLLER else manager,
    }
    head = {
        "apiVersion": mpijob.API_VERSION,
        "kind": kinds.TRAIN_JOB if name else "MPIJob",
        "metadata": {key: value for key, value in metadata.items() if key != "managedFields"},
    }
    document = {
        **head,
        **(_ENDED if ended else {}),
        "spec": {
            "slotsPerWorker": slots(runtime, job, jobs),
            "runLauncherAsWorker": as_node,
            "sshAuthMountPath": policy.get("sshAuthMountPath"),
            "mpiImplementation": policy.get("mpiImplementation"),
            "runPolicy": {key: value for key, value in run_policy.items() if value is not None},
            "mpiReplicaSpecs": specs,
            # Rules skip updates that leave this document unchanged, so the document has a digest of the other pods.
            "besides": _digest(others),
        },
    }
    other_pods = [
        OtherPods(path, msgspec.json.encode({**head, "spec": {"mpiReplicaSpecs": {LAUNCHER: replica}}}))
        for path, replica in others
    ]
    translation = Places(places, launcher_is_node=as_node, runtime=name)
    return Shape(msgspec.json.encode(document), other_pods, translation, jobs, runtime, job, metadata)


def _digest(others: list[tuple[str, dict[str, Any]]]) -> str:
    pods = [{**replica, "template": without_kueues(replica["template"])} for _, replica in others]
    return hashlib.sha256(msgspec.json.encode(pods)).hexdigest()


def _ended(document: dict[str, Any]) -> bool:
    conditions = mappings(at(document, "status").get("conditions"))
    return any(condition.get("type") in kinds.ENDS and condition.get("status") == "True" for condition in conditions)


def _template(
    replicated: ReplicatedJob, role: str | None, path: str, places: dict[str, Place], *, in_runtime: bool
) -> dict[str, Any]:
    """The pod template, whose first container runs the training. Adds the template's paths to `places`."""
    spec = dict(at(replicated.template, "spec"))
    written, node = replicated.containers, replicated.node
    order = sorted(range(len(written)), key=lambda index: index != node)
    containers = [written[index] for index in order]
    position = {index: new for new, index in enumerate(order)}
    if role == WORKER and containers and not (containers[0].get("command") or containers[0].get("args")):
        containers[0] = {**containers[0], "args": _OF_THE_IMAGE}
    here = f"{path}.template"
    places[path] = Place(replicated.path, in_runtime)
    places[here] = Place(replicated.template_path, in_runtime)
    for field in replicated.kept | {f".spec.containers[{index}]" for index in order}:
        places[here + _moved(field, position)] = Place(replicated.template_path + field, in_runtime)
    for field, origin in replicated.origins.items():
        places[here + _moved(field, position)] = Place(origin)
    spec["containers"] = containers
    return {**replicated.template, "spec": spec}


def _moved(path: str, position: dict[int, int]) -> str:
    head, bracket, rest = path.partition(".spec.containers[")
    if head or not bracket:
        return path
    index, _, rest = rest.partition("]")
    return f".spec.containers[{position[int(index)]}]{rest}"


def _volumes(written: Any, more: Iterable[str]) -> list[Any]:
    """Adds empty volumes in place of the volumes that Trainer and JobSet add."""
    volumes = list(written) if isinstance(written, list) else []
    names = {str(mapping(volume).get("name")) for volume in volumes}
    return volumes + [{"name": name, "emptyDir": {}} for name in dict.fromkeys(more) if name not in names]
