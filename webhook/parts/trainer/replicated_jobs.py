"""The pods that Trainer creates from a runtime's replicated jobs, with or without a TrainJob.

Sources: `newRuntimeInfo` in Trainer's `pkg/runtime/core/trainingruntime.go`, `EnforceMLPolicy` in
`pkg/runtime/framework/plugins/mpi/mpi.go`, and `Trainer` in `plugins/jobset/builder.go`.

Patches are merged like Kubernetes' strategic merge: `mergeRuntimePatches` in `trainingruntime.go`, and the patch
strategies in https://pkg.go.dev/k8s.io/api/core/v1#PodSpec.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.api import quantity
from webhook.api.quantity import QuantityError
from webhook.api.untyped import at, mapping, mappings
from webhook.parts.trainer import kinds
from webhook.parts.trainer.limits import MAX_MERGED_VALUES, MAX_OTHER_PODS_BYTES, PATH_CHARACTERS_PER_VALUE

JOB_SET: Final = "spec.template.spec"
"""The path of the JobSet's spec in a runtime."""
PATCHES: Final = "spec.runtimePatches"
FIX: Final = "Stay within that: no policy allows more."


@dataclass
class TooLarge(Exception):
    """The object is too large to be merged."""

    path: str
    message: str


class Work:
    """Limits the number of merged values: a merge may need many times the memory of the object."""

    def __init__(self) -> None:
        self._left = MAX_MERGED_VALUES

    def take(self, values: int, characters: int = 0) -> None:
        """Counts values and the length of their paths; TooLarge if there are too many."""
        self._left -= values + values * characters // PATH_CHARACTERS_PER_VALUE
        if self._left < 0:
            message = f"too large to judge: more than {MAX_MERGED_VALUES:,} values to merge into the runtime"
            raise TooLarge("spec", message)


def check_others(size: int, *, of_job: bool) -> None:
    """TooLarge if the pods other than the launcher and the nodes have too many bytes."""
    if size > MAX_OTHER_PODS_BYTES:
        fault = f"{size:,} bytes of other pods than launcher and nodes"
        message = f"too large to judge: {fault}, at most {MAX_OTHER_PODS_BYTES:,}"
        raise TooLarge(PATCHES if of_job else f"{JOB_SET}.replicatedJobs", message)


# Lists that are merged, and the key that identifies an item. Other lists are replaced.
_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "volumeMounts": "mountPath",
}
# Mappings with arbitrary keys. Paths have these keys in brackets.
_OWN_KEYS: Final = frozenset(("labels", "annotations", "nodeSelector", "limits", "requests"))

Origins = dict[str, str]
"""Maps a path in the merged template to the path in the TrainJob."""


def merge(base: Any, patch: dict[str, Any], *, path: str, written: str, origins: Origins, work: Work) -> dict[str, Any]:
    """Merges `patch` into a copy of `base`. `path` and `written` are the paths of `base` and `patch`."""
    merged = dict(mapping(base))
    work.take(len(merged))
    work.take(len(patch), len(path) + len(written))
    of_users = path.rpartition(".")[2] in _OWN_KEYS
    for key, value in patch.items():
        step = f"[{key}]" if of_users else f".{key}"
        target, origin = path + step, written + step
        if isinstance(value, dict):
            if key not in merged:
                origins[target] = origin
            merged[key] = merge(merged.get(key), value, path=target, written=origin, origins=origins, work=work)
        elif key in _KEYS and isinstance(value, list):
            merged[key] = _items(
                merged.get(key), value, key=_KEYS[key], path=target, written=origin, origins=origins, work=work
            )
        else:
            merged[key], origins[target] = value, origin
    return merged


def _items(
    base: Any, patch: list[Any], *, key: str, path: str, written: str, origins: Origins, work: Work
) -> list[dict[str, Any]]:
    items = mappings(base)
    work.take(len(items))
    work.take(len(patch), len(path) + len(written))
    names = {str(item.get(key)): index for index, item in enumerate(items)}
    for number, item in enumerate(mappings(patch)):
        index = names.setdefault(str(item.get(key)), len(items))
        target, origin = f"{path}[{index}]", f"{written}[{number}]"
        if index == len(items):
            items.append(item)
            origins[target] = origin
        else:
            items[index] = merge(items[index], item, path=target, written=origin, origins=origins, work=work)
    return items


RESOURCES: Final = "spec.trainer.resourcesPerNode"
_REPLACED: Final = ("image", "command", "args")


@dataclass(slots=True)
class ReplicatedJob:
    """An item of the JobSet's `replicatedJobs`."""

    index: int
    name: str
    written: dict[str, Any]
    """The item in the runtime."""
    step: str
    """The value of the label ANCESTOR."""
    template: dict[str, Any]
    """The pod template with the TrainJob's changes."""
    replicas: int
    pods: int
    """Pods of each replica."""
    depends_on: list[dict[str, Any]]
    origins: Origins = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    """Paths that belong to the runtime although a path above them is in `origins`."""

    @property
    def of_trainer(self) -> bool:
        return self.step == kinds.OF_TRAINER

    @property
    def path(self) -> str:
        return f"{JOB_SET}.replicatedJobs[{self.index}]"

    @property
    def template_path(self) -> str:
        return f"{self.path}.template.spec.template"

    @property
    def containers(self) -> list[dict[str, Any]]:
        return mappings(at(self.template, "spec").get("containers"))

    @property
    def node(self) -> int | None:
        """The index of the container that runs the training."""
        return self.named(kinds.NODE)

    def named(self, name: str) -> int | None:
        return next((index for index, container in enumerate(self.containers) if container.get("name") == name), None)

    @property
    def mounts(self) -> Iterator[str]:
        pod = at(self.template, "spec")
        for container in [*mappings(pod.get("initContainers")), *mappings(pod.get("containers"))]:
            yield from (str(mount.get("name")) for mount in mappings(container.get("volumeMounts")))

    def replace_containers(self, containers: list[dict[str, Any]]) -> None:
        self.template = {**self.template, "spec": {**at(self.template, "spec"), "containers": containers}}


def launcher_is_node(runtime: dict[str, Any]) -> bool:
    return at(runtime, "mlPolicy", "mpi").get("runLauncherAsNode") is True


def replicated_jobs(runtime: dict[str, Any], job: dict[str, Any]) -> list[ReplicatedJob]:
    """The replicated jobs with the changes by a TrainJob. `job` is the TrainJob's spec; empty if there is none."""
    result = []
    work = Work()
    patches = _patches(job)
    for index, written in enumerate(mappings(at(runtime, "template", "spec").get("replicatedJobs"))):
        job_template = at(written, "template")
        replicated_job = ReplicatedJob(
            index=index,
            name=str(written.get("name")),
            written=written,
            step="",
            template=at(job_template, "spec", "template"),
            replicas=_number(written.get("replicas"), 1),
            pods=_number(at(job_template, "spec").get("parallelism"), 1),
            depends_on=mappings(written.get("dependsOn")),
        )
        labels = dict(at(job_template, "metadata", "labels"))
        for where, patch in patches.get(replicated_job.name, ()):
            labels |= at(patch, "metadata", "labels")
            pods = at(patch, "spec", "template")
            place = f"{where}.spec.template"
            replicated_job.template = merge(
                replicated_job.template, pods, path="", written=place, origins=replicated_job.origins, work=work
            )
        replicated_job.step = str(labels.get(kinds.ANCESTOR))
        _set_pods(replicated_job, runtime, mapping(job.get("trainer")))
        _merge_trainer(replicated_job, runtime, mapping(job.get("trainer")), work)
        _merge_initializer(replicated_job, mapping(job.get("initializer")), work)
        result.append(replicated_job)
    return result


def slots(runtime: dict[str, Any], job: dict[str, Any], jobs: list[ReplicatedJob]) -> int:
    """Processes on each node.

    This is the TrainJob's number, or else the runtime's number if it is not 1, or else the number of GPUs.
    """
    trainer = at(job, "trainer")
    if trainer.get("numProcPerNode") is not None:
        return _number(trainer["numProcPerNode"], 1)
    number = _number(at(runtime, "mlPolicy", "mpi").get("numProcPerNode"), 1)
    if number != 1:
        return number
    resources = trainer.get("resourcesPerNode")
    if resources is None:
        with_resources = (
            mapping(replicated.containers[replicated.node].get("resources"))
            for replicated in jobs
            if (replicated.name == kinds.NODE or replicated.of_trainer) and replicated.node is not None
        )
        resources = next(filter(None, with_resources), {})
    return max(_gpus(at(resources, "requests")) or _gpus(at(resources, "limits")), 1)


def claim_templates(spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The path and name of each claim of the JobSet."""
    for index, policy in enumerate(mappings(spec.get("volumeClaimPolicies"))):
        for number, template in enumerate(mappings(policy.get("templates"))):
            path = f"{JOB_SET}.volumeClaimPolicies[{index}].templates[{number}].metadata.name"
            yield path, str(at(template, "metadata").get("name") or "")


def _patches(job: dict[str, Any]) -> Mapping[str, list[tuple[str, dict[str, Any]]]]:
    patches: defaultdict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for index, patch in enumerate(mappings(job.get("runtimePatches"))):
        inner = at(patch, "trainingRuntimeSpec", "template", "spec")
        for number, replicated in enumerate(mappings(inner.get("replicatedJobs"))):
            path = f"{PATCHES}[{index}].trainingRuntimeSpec.template.spec.replicatedJobs[{number}].template"
            patches[str(replicated.get("name"))].append((path, at(replicated, "template")))
    return patches


def _set_pods(replicated_job: ReplicatedJob, runtime: dict[str, Any], trainer: dict[str, Any]) -> None:
    if replicated_job.of_trainer:
        replicated_job.pods = _number(at(runtime, "mlPolicy").get("numNodes"), 1)
    replicated_job.pods = max(replicated_job.pods, 1)  # `WithPodSet` of Trainer's `pkg/runtime/runtime.go`
    if replicated_job.name == kinds.NODE and trainer.get("numNodes") is not None:
        nodes = _number(trainer["numNodes"], 1)
        replicated_job.pods = max(nodes - 1, 1) if launcher_is_node(runtime) else nodes


def _merge_trainer(replicated_job: ReplicatedJob, runtime: dict[str, Any], trainer: dict[str, Any], work: Work) -> None:
    is_node = replicated_job.name == kinds.NODE and launcher_is_node(runtime)
    index = replicated_job.node
    if index is None or not (replicated_job.of_trainer or is_node):
        return
    path = f".spec.containers[{index}]"
    containers = replicated_job.containers
    container = containers[index] = dict(containers[index])
    for name in _REPLACED if replicated_job.of_trainer else ():
        if trainer.get(name) is not None:
            container[name] = trainer[name]
            replicated_job.origins[f"{path}.{name}"] = f"spec.trainer.{name}"
    if trainer.get("env"):
        change = {"env": trainer["env"]}
        container = merge(
            container, change, path=path, written="spec.trainer", origins=replicated_job.origins, work=work
        )
    if resources := mapping(trainer.get("resourcesPerNode")):
        container["resources"] = _resources(replicated_job, path, mapping(container.get("resources")), resources, work)
    containers[index] = container
    replicated_job.replace_containers(containers)


def _merge_initializer(replicated_job: ReplicatedJob, initializer: dict[str, Any], work: Work) -> None:
    field, index = kinds.INITIALIZERS.get(replicated_job.step, ""), replicated_job.named(replicated_job.step)
    settings = mapping(initializer.get(field))
    if index is None or not settings:
        return
    path, written, containers = f".spec.containers[{index}]", f"spec.initializer.{field}", replicated_job.containers
    change = {"env": settings["env"]} if settings.get("env") else {}
    container = merge(containers[index], change, path=path, written=written, origins=replicated_job.origins, work=work)
    if secret := mapping(settings.get("secretRef")):
        sources = mappings(container.get("envFrom"))
        replicated_job.origins[f"{path}.envFrom[{len(sources)}].secretRef"] = f"{written}.secretRef"
        container["envFrom"] = [*sources, {"secretRef": secret}]
    containers[index] = container
    replicated_job.replace_containers(containers)


def _resources(
    job: ReplicatedJob, path: str, base: dict[str, Any], patch: dict[str, Any], work: Work
) -> dict[str, Any]:
    merged = merge(base, patch, path=f"{path}.resources", written=RESOURCES, origins={}, work=work)
    job.origins[f"{path}.resources"] = RESOURCES
    job.origins[".spec.containers"] = RESOURCES  # for violations about the sum of all containers' requests
    job.kept |= {f".spec.containers[{index}]" for index in range(len(job.containers))}
    for kind in ("limits", "requests"):
        job.kept |= {f"{path}.resources.{kind}[{name}]" for name in at(base, kind).keys() - at(patch, kind).keys()}
    return merged


def _gpus(amounts: dict[str, Any]) -> int:
    """As in Trainer, the amount of the first resource whose name contains `gpu`."""
    for name, amount in amounts.items():
        if "gpu" in name.lower():
            try:
                return quantity.whole(quantity.parse(amount))
            except QuantityError:
                return 0
    return 0


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
