"""Builds the MPIJob with the same pods as a TrainJob with an MPI runtime, or as an MPI runtime alone."""

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
    METADATA,
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
# The status of an ended MPIJob. No rule uses the time.
_ENDED: Final = {
    "status": {
        "conditions": [{"type": "Succeeded", "status": "True"}],
        "completionTime": "1970-01-01T00:00:00Z",
    }
}
# Placeholder for the image's entrypoint. Without it, rules would assume sshd, which mpi-operator starts on workers.
_OF_THE_IMAGE: Final = ["(entrypoint)"]


@dataclass(frozen=True, slots=True)
class OtherPods:
    """The pods of a replicated job other than launcher and nodes, as the launcher of an MPIJob."""

    path: str
    """The path of the pods, which replaces the path of the launcher's replica spec in violations."""
    document: bytes
    """JSON of the MPIJob."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The equivalent MPIJob, and the parts of the TrainJob and the runtime that it does not have."""

    document: bytes
    """JSON of the MPIJob."""
    others: list[OtherPods]
    places: Places
    jobs: list[ReplicatedJob]
    runtime: dict[str, Any]
    """The spec of the runtime."""
    job: dict[str, Any]
    """The spec of the TrainJob; empty for a runtime alone."""
    metadata: dict[str, Any]

    def replicated_job(self, name: str) -> ReplicatedJob | None:
        return next((each for each in self.jobs if each.name == name), None)


def of_runtime(document: dict[str, Any]) -> Shape | None:
    """The shape of a runtime; None without an MPI policy or nodes, TooLarge if its other pods are too large."""
    return _shape(mapping(document.get("spec")), {}, mapping(document.get("metadata")), _runtimes_places(), "")


def of_train_job(document: dict[str, Any], runtime: TrainingRuntime) -> Shape | None:
    """The shape of a TrainJob with its runtime; None if the runtime has no shape, TooLarge if it cannot be merged."""
    if not runtime.spec:
        return None
    kind = kinds.RUNTIME if runtime.namespace else kinds.CLUSTER_RUNTIME
    known = {path: place._replace(in_runtime=True) for path, place in _runtimes_places().items()} | {
        f"{replica_path(WORKER)}.replicas": Place("spec.trainer.numNodes"),
        "spec.slotsPerWorker": Place("spec.trainer.numProcPerNode"),
        "spec.runPolicy": Place("spec"),
    }
    return _shape(
        untyped.decode(runtime.spec),
        mapping(document.get("spec")),
        mapping(document.get("metadata")),
        known,
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
        METADATA: Place(METADATA),
    }


def _shape(
    runtime: dict[str, Any],
    job: dict[str, Any],
    metadata: dict[str, Any],
    known: dict[str, Place],
    name: str,
    *,
    ended: bool = False,
) -> Shape | None:
    policy = at(runtime, "mlPolicy").get("mpi")
    if not isinstance(policy, dict):
        return None
    jobs = replicated_jobs(runtime, job)
    if all(each.name != kinds.NODE for each in jobs):
        return None
    specs: dict[str, Any] = {}
    claims = [name for _, name in claim_templates(at(runtime, "template", "spec"))]
    others: list[tuple[str, dict[str, Any]]] = []
    size = 0
    for each in jobs:
        role = ROLES.get(each.name)
        # Other pods have a number in place of a role in the path: a number cannot be the name of a role.
        path = replica_path(role or str(each.index))
        template = _template(each, role, path, known, in_runtime=bool(name))
        mounted = set(each.mounts)
        volumes = [name for name in claims if name in mounted]
        volumes += [kinds.KEY_VOLUME, kinds.HOSTFILE_VOLUME] if role else []
        volumes += each.mounts if not name else []  # patches of TrainJobs may add missing volumes
        template["spec"]["volumes"] = _volumes(template["spec"].get("volumes"), volumes)
        replica = {
            "replicas": each.replicas * each.pods if role == WORKER else 1,
            "restartPolicy": at(each.template, "spec").get("restartPolicy") or _RESTART_POLICY,
            "template": template,
        }
        if role:
            specs[role] = replica
        else:
            others.append((path, replica))
            size += len(msgspec.json.encode(each.template))
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
            # Without this digest, rules would ignore an update that changes only the other pods or labels.
            "besides": _digest(others, job),
        },
    }
    places = Places(known, launcher_is_node=as_node, runtime=name)
    other_pods = [
        OtherPods(path, msgspec.json.encode({**head, "spec": {"mpiReplicaSpecs": {LAUNCHER: replica}}}))
        for path, replica in others
    ]
    return Shape(msgspec.json.encode(document), other_pods, places, jobs, runtime, job, metadata)


def _digest(others: list[tuple[str, dict[str, Any]]], job: dict[str, Any]) -> str:
    """A digest of the other pods without Kueue's changes, and of the metadata of JobSet and Jobs in patches."""
    pods = [{**replica, "template": without_kueues(replica["template"])} for _, replica in others]
    templates = [at(patch, "trainingRuntimeSpec", "template") for patch in mappings(job.get("runtimePatches"))]
    jobs = [each for template in templates for each in mappings(at(template, "spec").get("replicatedJobs"))]
    described = [at(each, "metadata") for each in [*templates, *(at(each, "template") for each in jobs)]]
    return hashlib.sha256(msgspec.json.encode([pods, [each for each in described if each]])).hexdigest()


def _ended(document: dict[str, Any]) -> bool:
    conditions = mappings(at(document, "status").get("conditions"))
    return any(each.get("type") in kinds.ENDS and each.get("status") == "True" for each in conditions)


def _template(
    each: ReplicatedJob, role: str | None, path: str, known: dict[str, Place], *, in_runtime: bool
) -> dict[str, Any]:
    """The pod template with the container that runs the training first. Adds the template's places to `known`."""
    spec = dict(at(each.template, "spec"))
    written, node = each.containers, each.node
    order = sorted(range(len(written)), key=lambda index: index != node)
    containers = [written[index] for index in order]
    position = {index: new for new, index in enumerate(order)}
    if role == WORKER and containers and not (containers[0].get("command") or containers[0].get("args")):
        containers[0] = {**containers[0], "args": _OF_THE_IMAGE}
    here = f"{path}.template"
    known[path] = Place(each.path, in_runtime)
    known[here] = Place(each.template_path, in_runtime)
    for field in each.kept | {f".spec.containers[{index}]" for index in order}:
        known[here + _moved(field, position)] = Place(each.template_path + field, in_runtime)
    for field, origin in each.origins.items():
        known[here + _moved(field, position)] = Place(origin)
    spec["containers"] = containers
    return {**each.template, "spec": spec}


def _moved(path: str, position: dict[int, int]) -> str:
    """`path` with the new index of the container in it."""
    head, bracket, rest = path.partition(".spec.containers[")
    if head or not bracket:
        return path
    index, _, rest = rest.partition("]")
    return f".spec.containers[{position[int(index)]}]{rest}"


def _volumes(written: Any, more: Iterable[str]) -> list[Any]:
    """The volumes, with empty volumes for those that Trainer and JobSet add. Containers may mount added volumes."""
    volumes = list(written) if isinstance(written, list) else []
    names = {str(mapping(volume).get("name")) for volume in volumes}
    return volumes + [{"name": name, "emptyDir": {}} for name in dict.fromkeys(more) if name not in names]
