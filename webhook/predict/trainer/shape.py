"""A TrainJob with its MPI runtime, or such a runtime alone, as the MPIJob that would make the same pods."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from webhook.api import mpijob, trainer
from webhook.api.annotations import INJECTED
from webhook.api.mpijob import LAUNCHER, WORKER, replica_path
from webhook.api.trainer import at, mapping
from webhook.cluster.training_runtimes import TrainingRuntime
from webhook.predict.trainer.places import Place, Places
from webhook.predict.trainer.replicated_jobs import JOB_SET, ReplicatedJob, launcher_is_node, replicated_jobs, slots

_ROLES: Final = {trainer.LAUNCHER: LAUNCHER, trainer.NODE: WORKER}
# JobSet's default.
_RESTART_POLICY: Final = "OnFailure"
# Stands for what an image starts by itself: of an MPIJob's workers that would be sshd.
_OF_THE_IMAGE: Final = ["(entrypoint)"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What rules read of it, and what there is besides."""

    document: bytes
    """JSON of the MPIJob."""
    places: Places
    jobs: list[ReplicatedJob]
    runtime: dict[str, Any]
    """The spec of the runtime."""
    job: dict[str, Any]
    """The spec of the TrainJob; empty for a runtime alone."""
    metadata: dict[str, Any]

    def replicated_job(self, name: str) -> ReplicatedJob | None:
        """The one of this name."""
        return next((each for each in self.jobs if each.name == name), None)


def of_runtime(document: dict[str, Any]) -> Shape | None:
    """Of a runtime's JSON; None where it has no MPI policy."""
    return _shape(mapping(document.get("spec")), {}, mapping(document.get("metadata")), _runtimes_places(), "")


def of_train_job(document: dict[str, Any], runtime: TrainingRuntime) -> Shape | None:
    """Of a TrainJob's JSON and its runtime; None where that has no MPI policy."""
    if not runtime.spec:
        return None
    kind = trainer.RUNTIME if runtime.namespace else trainer.CLUSTER_RUNTIME
    known = {path: place._replace(in_runtime=True) for path, place in _runtimes_places().items()} | {
        f"{replica_path(WORKER)}.replicas": Place("spec.trainer.numNodes"),
        "spec.slotsPerWorker": Place("spec.trainer.numProcPerNode"),
        "spec.runPolicy": Place("spec"),
    }
    spec, metadata = mapping(document.get("spec")), mapping(document.get("metadata"))
    return _shape(msgspec.json.decode(runtime.spec), spec, metadata, known, f"{kind} {runtime.name}")


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
    runtime: dict[str, Any], job: dict[str, Any], metadata: dict[str, Any], known: dict[str, Place], name: str
) -> Shape | None:
    policy = at(runtime, "mlPolicy").get("mpi")
    if not isinstance(policy, dict):
        return None
    jobs = replicated_jobs(runtime, job)
    specs: dict[str, Any] = {}
    for each in jobs:
        if each.name in _ROLES:
            role = _ROLES[each.name]
            template = _known(each, role, known, in_runtime=bool(name))
            specs[role] = {
                "replicas": 1 if role == LAUNCHER else each.replicas * each.pods,
                "restartPolicy": at(each.template, "spec").get("restartPolicy") or _RESTART_POLICY,
                "template": template,
            }
    as_node = launcher_is_node(runtime)
    manager = job.get("managedBy")
    run_policy = {
        "suspend": job.get("suspend"),
        "activeDeadlineSeconds": job.get("activeDeadlineSeconds"),
        "managedBy": None if manager == trainer.CONTROLLER else manager,
    }
    document = {
        "apiVersion": mpijob.API_VERSION,
        "kind": trainer.TRAIN_JOB if name else "MPIJob",
        "metadata": _metadata(metadata),
        "spec": {
            "slotsPerWorker": slots(runtime, job, jobs),
            "runLauncherAsWorker": as_node,
            "sshAuthMountPath": policy.get("sshAuthMountPath"),
            "mpiImplementation": policy.get("mpiImplementation"),
            "runPolicy": {key: value for key, value in run_policy.items() if value is not None},
            "mpiReplicaSpecs": specs,
        },
    }
    places = Places(known, launcher_is_node=as_node, runtime=name)
    return Shape(msgspec.json.encode(document), places, jobs, runtime, job, metadata)


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Without what tools keep there, and without the record of what is injected: nothing is."""
    annotations = {key: value for key, value in at(metadata, "annotations").items() if key != INJECTED}
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**kept, "annotations": annotations or None}


def _known(each: ReplicatedJob, role: str, known: dict[str, Place], *, in_runtime: bool) -> dict[str, Any]:
    """Its pod template for the role, with the container that runs the training first; its places become `known`."""
    spec = dict(at(each.template, "spec"))
    written, node = each.containers, each.node
    order = sorted(range(len(written)), key=lambda index: index != node)
    containers = [written[index] for index in order]
    position = {index: new for new, index in enumerate(order)}
    if role == WORKER and containers and not (containers[0].get("command") or containers[0].get("args")):
        containers[0] = {**containers[0], "args": _OF_THE_IMAGE}
    here = f"{replica_path(role)}.template"
    known[replica_path(role)] = Place(each.path, in_runtime)
    known[here] = Place(each.template_path, in_runtime)
    for path in each.kept | {f".spec.containers[{index}]" for index in order}:
        known[here + _moved(path, position)] = Place(each.template_path + path, in_runtime)
    for path, origin in each.origins.items():
        known[here + _moved(path, position)] = Place(origin)
    spec["containers"] = containers
    spec["volumes"] = _volumes(spec.get("volumes"))
    return {**each.template, "spec": spec}


def _moved(path: str, position: dict[int, int]) -> str:
    """`path` with the new index of its container."""
    head, bracket, rest = path.partition(".spec.containers[")
    if head or not bracket:
        return path
    index, _, rest = rest.partition("]")
    return f".spec.containers[{position[int(index)]}]{rest}"


def _volumes(written: Any) -> list[Any]:
    """With those that Trainer adds, whose contents come later: containers may mount them themselves."""
    volumes = list(written) if isinstance(written, list) else []
    names = {str(mapping(volume).get("name")) for volume in volumes}
    return volumes + [
        {"name": name, "emptyDir": {}} for name in (trainer.KEY_VOLUME, trainer.HOSTFILE_VOLUME) if name not in names
    ]
