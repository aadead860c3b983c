"""A TrainJob with its MPI runtime, or such a runtime alone, as the MPIJob with the same pods."""

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

_ROLES: Final = {kinds.LAUNCHER: LAUNCHER, kinds.NODE: WORKER}
# JobSet's default.
_RESTART_POLICY: Final = "OnFailure"
# In mpi-operator's words; the time is not read.
_ENDED: Final = {
    "status": {
        "conditions": [{"type": "Succeeded", "status": "True"}],
        "completionTime": "1970-01-01T00:00:00Z",
    }
}
# Stands for the image's own program: for an MPIJob's workers it would be sshd.
_OF_THE_IMAGE: Final = ["(entrypoint)"]


@dataclass(frozen=True, slots=True)
class OtherPods:
    """Pods except launcher and nodes, such as those that fetch a dataset, as the launcher of an MPIJob."""

    path: str
    """Replaces the path of the launcher's replica spec."""
    document: bytes
    """JSON of that MPIJob."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The MPIJob that rules read, and the rest of the object."""

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
        """The replicated job of this name."""
        return next((each for each in self.jobs if each.name == name), None)


def of_runtime(document: dict[str, Any]) -> Shape | None:
    """The shape of a runtime's JSON; None without an MPI policy or without nodes, TooLarge if its other pods are."""
    return _shape(mapping(document.get("spec")), {}, mapping(document.get("metadata")), _runtimes_places(), "")


def of_train_job(document: dict[str, Any], runtime: TrainingRuntime) -> Shape | None:
    """The shape of a TrainJob's JSON and its runtime; None as for that, TooLarge beyond what can be merged."""
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
        role = _ROLES.get(each.name)
        # No role has a number as its name.
        path = replica_path(role or str(each.index))
        template = _known(each, role, path, known, in_runtime=bool(name))
        mounted = set(each.mounts)
        volumes = [name for name in claims if name in mounted]
        volumes += [kinds.KEY_VOLUME, kinds.HOSTFILE_VOLUME] if role else []
        volumes += each.mounts if not name else []  # patches of TrainJobs may add any
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
        "metadata": _metadata(metadata),
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
            # Digest of everything else that is judged: otherwise an update that changes only this would not be judged.
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
    """For the other pods except what Kueue changes of them, and of the labels that a TrainJob gives JobSet and Jobs."""
    pods = [{**replica, "template": without_kueues(replica["template"])} for _, replica in others]
    templates = [at(patch, "trainingRuntimeSpec", "template") for patch in mappings(job.get("runtimePatches"))]
    jobs = [each for template in templates for each in mappings(at(template, "spec").get("replicatedJobs"))]
    described = [at(each, "metadata") for each in [*templates, *(at(each, "template") for each in jobs)]]
    return hashlib.sha256(msgspec.json.encode([pods, [each for each in described if each]])).hexdigest()


def _ended(document: dict[str, Any]) -> bool:
    """Whether Trainer has recorded the end of the TrainJob, one way or the other."""
    conditions = mappings(at(document, "status").get("conditions"))
    return any(each.get("type") in kinds.ENDS and each.get("status") == "True" for each in conditions)


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Without the records of clients, `managedFields`."""
    return {key: value for key, value in metadata.items() if key != "managedFields"}


def _known(
    each: ReplicatedJob, role: str | None, path: str, known: dict[str, Place], *, in_runtime: bool
) -> dict[str, Any]:
    """Its pod template for the role, with the container that runs the training first; adds its places to `known`."""
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
    """`path` with the new index of its container."""
    head, bracket, rest = path.partition(".spec.containers[")
    if head or not bracket:
        return path
    index, _, rest = rest.partition("]")
    return f".spec.containers[{position[int(index)]}]{rest}"


def _volumes(written: Any, more: Iterable[str]) -> list[Any]:
    """With those that Trainer and JobSet add, whose contents come later: containers may mount them themselves."""
    volumes = list(written) if isinstance(written, list) else []
    names = {str(mapping(volume).get("name")) for volume in volumes}
    return volumes + [{"name": name, "emptyDir": {}} for name in dict.fromkeys(more) if name not in names]
