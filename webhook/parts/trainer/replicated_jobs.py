"""The pods that Trainer makes of a runtime's replicated jobs, for a TrainJob or for none.

Upstream: `newRuntimeInfo` of Trainer's `pkg/runtime/core/trainingruntime.go`, `EnforceMLPolicy` of its
`pkg/runtime/framework/plugins/mpi/mpi.go`, and `Trainer` of `plugins/jobset/builder.go`.

Patches are merged like Kubernetes' strategic merge: `mergeRuntimePatches` of `trainingruntime.go`, and the patch
strategies of https://pkg.go.dev/k8s.io/api/core/v1#PodSpec. A merge may multiply the memory, so its size has a limit.
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
"""The path of a TrainJob's patches."""
FIX: Final = "Stay within that: no policy allows more."


@dataclass
class TooLarge(Exception):
    """There is too much of something."""

    path: str
    message: str


class Work:
    """The rest that may be merged."""

    def __init__(self) -> None:
        self._left = MAX_MERGED_VALUES

    def take(self, values: int, characters: int = 0) -> None:
        """Count visited values, each with a path of this length; TooLarge beyond `MAX_MERGED_VALUES`."""
        self._left -= values + values * characters // PATH_CHARACTERS_PER_VALUE
        if self._left < 0:
            message = f"too large to judge: more than {MAX_MERGED_VALUES:,} values to merge into the runtime"
            raise TooLarge("spec", message)


def check_others(size: int, *, of_job: bool) -> None:
    """TooLarge if the pods except launcher and nodes have too many bytes in all; `of_job`: by the TrainJob's
    patches.
    """
    if size > MAX_OTHER_PODS_BYTES:
        what = "bytes of other pods than launcher and nodes"
        message = f"too large to judge: {size:,} {what}, at most {MAX_OTHER_PODS_BYTES:,}"
        raise TooLarge(PATCHES if of_job else f"{JOB_SET}.replicatedJobs", message)


# Lists whose items are merged by this key; all others are replaced.
_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "volumeMounts": "mountPath",
}
# Mappings with the user's keys, which are in brackets in paths.
_OWN_KEYS: Final = frozenset(("labels", "annotations", "nodeSelector", "limits", "requests"))

Origins = dict[str, str]
"""From a path to the path at which it was written; others come from the rest."""


def merge(base: Any, patch: dict[str, Any], *, path: str, written: str, origins: Origins, work: Work) -> dict[str, Any]:
    """`base` with `patch`, which is written at `written`, merged in at `path`; neither is changed.

    TooLarge if that is too much `work`.
    """
    merged = dict(mapping(base))
    work.take(len(merged))
    work.take(len(patch), len(path) + len(written))
    of_users = path.rpartition(".")[2] in _OWN_KEYS
    for key, value in patch.items():
        step = f"[{key}]" if of_users else f".{key}"
        here, there = path + step, written + step
        if isinstance(value, dict):
            if key not in merged:
                origins[here] = there
            merged[key] = merge(merged.get(key), value, path=here, written=there, origins=origins, work=work)
        elif key in _KEYS and isinstance(value, list):
            merged[key] = _items(
                merged.get(key), value, key=_KEYS[key], path=here, written=there, origins=origins, work=work
            )
        else:
            merged[key], origins[here] = value, there
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
        here, there = f"{path}[{index}]", f"{written}[{number}]"
        if index == len(items):
            items.append(item)
            origins[here] = there
        else:
            items[index] = merge(items[index], item, path=here, written=there, origins=origins, work=work)
    return items


METADATA: Final = "spec.template.metadata"
"""The path of the JobSet's labels and annotations in a runtime."""
RESOURCES: Final = "spec.trainer.resourcesPerNode"
# Fields of the container that a TrainJob's `trainer` replaces.
_REPLACED: Final = ("image", "command", "args")


@dataclass(slots=True)
class ReplicatedJob:
    """One of the runtime's `spec.template.spec.replicatedJobs`."""

    index: int
    name: str
    written: dict[str, Any]
    """As written in the runtime."""
    step: str
    """Its purpose, by the label of its ancestor."""
    template: dict[str, Any]
    """Its pod template."""
    replicas: int
    pods: int
    """Pods of each replica."""
    depends_on: list[dict[str, Any]]
    origins: Origins = field(default_factory=dict)
    """By path in the template: where the TrainJob has the value, if it is not the runtime's."""
    kept: set[str] = field(default_factory=set)
    """Paths in the template that belong to the runtime all the same."""

    @property
    def of_trainer(self) -> bool:
        """Whether it gets the fields of a TrainJob's `trainer`."""
        return self.step == kinds.OF_TRAINER

    @property
    def path(self) -> str:
        """Its path in the runtime."""
        return f"{JOB_SET}.replicatedJobs[{self.index}]"

    @property
    def template_path(self) -> str:
        """The path of its pod template in the runtime."""
        return f"{self.path}.template.spec.template"

    @property
    def containers(self) -> list[dict[str, Any]]:
        """The containers of the pod template."""
        return mappings(at(self.template, "spec").get("containers"))

    @property
    def node(self) -> int | None:
        """The index of the container that runs the training."""
        return self.named(kinds.NODE)

    def named(self, name: str) -> int | None:
        """The index of the container of this name."""
        return next((index for index, each in enumerate(self.containers) if each.get("name") == name), None)

    @property
    def mounts(self) -> Iterator[str]:
        """The names of the volumes that containers mount."""
        pod = at(self.template, "spec")
        for container in [*mappings(pod.get("initContainers")), *mappings(pod.get("containers"))]:
            yield from (str(mount.get("name")) for mount in mappings(container.get("volumeMounts")))

    def replace_containers(self, containers: list[dict[str, Any]]) -> None:
        self.template = {**self.template, "spec": {**at(self.template, "spec"), "containers": containers}}


def launcher_is_node(runtime: dict[str, Any]) -> bool:
    """Whether the launcher runs ranks too."""
    return at(runtime, "mlPolicy", "mpi").get("runLauncherAsNode") is True


def replicated_jobs(runtime: dict[str, Any], job: dict[str, Any]) -> list[ReplicatedJob]:
    """The replicated jobs of a runtime's spec, with the patches and the `trainer` of a TrainJob's spec, which may be
    empty.

    TooLarge if that is too much to merge.
    """
    result = []
    work = Work()
    patches = _patches(job)
    for index, written in enumerate(mappings(at(runtime, "template", "spec").get("replicatedJobs"))):
        whole = at(written, "template")
        each = ReplicatedJob(
            index=index,
            name=str(written.get("name")),
            written=written,
            step="",
            template=at(whole, "spec", "template"),
            replicas=_number(written.get("replicas"), 1),
            pods=_number(at(whole, "spec").get("parallelism"), 1),
            depends_on=mappings(written.get("dependsOn")),
        )
        labels = dict(at(whole, "metadata", "labels"))
        for where, patch in patches.get(each.name, ()):
            labels |= at(patch, "metadata", "labels")
            pods = at(patch, "spec", "template")
            place = f"{where}.spec.template"
            each.template = merge(each.template, pods, path="", written=place, origins=each.origins, work=work)
        each.step = str(labels.get(kinds.ANCESTOR))
        _sized(each, runtime, mapping(job.get("trainer")))
        _trained(each, runtime, mapping(job.get("trainer")), work)
        _initialized(each, mapping(job.get("initializer")), work)
        result.append(each)
    return result


def slots(runtime: dict[str, Any], job: dict[str, Any], jobs: list[ReplicatedJob]) -> int:
    """Processes on a node; as many as it has GPUs if the runtime says so."""
    wanted = at(job, "trainer")
    if wanted.get("numProcPerNode") is not None:
        return _number(wanted["numProcPerNode"], 1)
    number = _number(at(runtime, "mlPolicy", "mpi").get("numProcPerNode"), 1)
    if number != 1:
        return number
    resources = wanted.get("resourcesPerNode")
    if resources is None:
        with_resources = (
            mapping(each.containers[each.node].get("resources"))
            for each in jobs
            if (each.name == kinds.NODE or each.of_trainer) and each.node is not None
        )
        resources = next(filter(None, with_resources), {})
    return max(_gpus(at(resources, "requests")) or _gpus(at(resources, "limits")), 1)


def claim_templates(spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, name) of each claim that JobSet creates, and mounts if a container says so."""
    for index, policy in enumerate(mappings(spec.get("volumeClaimPolicies"))):
        for number, template in enumerate(mappings(policy.get("templates"))):
            path = f"{JOB_SET}.volumeClaimPolicies[{index}].templates[{number}].metadata.name"
            yield path, str(at(template, "metadata").get("name") or "")


def _patches(job: dict[str, Any]) -> Mapping[str, list[tuple[str, dict[str, Any]]]]:
    """(path, patch) of each patch of a replicated job's template, by the names of these."""
    found: defaultdict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for index, patch in enumerate(mappings(job.get("runtimePatches"))):
        inner = at(patch, "trainingRuntimeSpec", "template", "spec")
        for number, replicated in enumerate(mappings(inner.get("replicatedJobs"))):
            path = f"{PATCHES}[{index}].trainingRuntimeSpec.template.spec.replicatedJobs[{number}].template"
            found[str(replicated.get("name"))].append((path, at(replicated, "template")))
    return found


def _sized(each: ReplicatedJob, runtime: dict[str, Any], wanted: dict[str, Any]) -> None:
    if each.of_trainer:
        each.pods = _number(at(runtime, "mlPolicy").get("numNodes"), 1)
    each.pods = max(each.pods, 1)  # `WithPodSet` of Trainer's `pkg/runtime/runtime.go`
    if each.name == kinds.NODE and wanted.get("numNodes") is not None:
        nodes = _number(wanted["numNodes"], 1)
        each.pods = max(nodes - 1, 1) if launcher_is_node(runtime) else nodes


def _trained(each: ReplicatedJob, runtime: dict[str, Any], wanted: dict[str, Any], work: Work) -> None:
    """Merge the TrainJob's `trainer` into the container, as far as it applies to this replicated job."""
    is_node = each.name == kinds.NODE and launcher_is_node(runtime)
    index = each.node
    if index is None or not (each.of_trainer or is_node):
        return
    here = f".spec.containers[{index}]"
    containers = each.containers
    container = containers[index] = dict(containers[index])
    for name in _REPLACED if each.of_trainer else ():
        if wanted.get(name) is not None:
            container[name] = wanted[name]
            each.origins[f"{here}.{name}"] = f"spec.trainer.{name}"
    if wanted.get("env"):
        change = {"env": wanted["env"]}
        container = merge(container, change, path=here, written="spec.trainer", origins=each.origins, work=work)
    if resources := mapping(wanted.get("resourcesPerNode")):
        container["resources"] = _resources(each, here, mapping(container.get("resources")), resources, work)
    containers[index] = container
    each.replace_containers(containers)


def _initialized(each: ReplicatedJob, initializer: dict[str, Any], work: Work) -> None:
    """Merge the TrainJob's `initializer` into the container that fetches a dataset or a model."""
    field, index = kinds.INITIALIZERS.get(each.step, ""), each.named(each.step)
    wanted = mapping(initializer.get(field))
    if index is None or not wanted:
        return
    here, there, containers = f".spec.containers[{index}]", f"spec.initializer.{field}", each.containers
    change = {"env": wanted["env"]} if wanted.get("env") else {}
    container = merge(containers[index], change, path=here, written=there, origins=each.origins, work=work)
    if secret := mapping(wanted.get("secretRef")):
        sources = mappings(container.get("envFrom"))
        each.origins[f"{here}.envFrom[{len(sources)}].secretRef"] = f"{there}.secretRef"
        container["envFrom"] = [*sources, {"secretRef": secret}]
    containers[index] = container
    each.replace_containers(containers)


def _resources(
    each: ReplicatedJob, here: str, own: dict[str, Any], wanted: dict[str, Any], work: Work
) -> dict[str, Any]:
    """The resources; those of the runtime are recorded as such."""
    merged = merge(own, wanted, path=f"{here}.resources", written=RESOURCES, origins={}, work=work)
    each.origins[f"{here}.resources"] = RESOURCES
    each.origins[".spec.containers"] = RESOURCES  # the sum of all containers' requests
    each.kept |= {f".spec.containers[{index}]" for index in range(len(each.containers))}
    for kind in ("limits", "requests"):
        each.kept |= {f"{here}.resources.{kind}[{name}]" for name in at(own, kind).keys() - at(wanted, kind).keys()}
    return merged


def _gpus(amounts: dict[str, Any]) -> int:
    """As Trainer counts them: the first resource whose name has `gpu` in it."""
    for name, amount in amounts.items():
        if "gpu" in name.lower():
            try:
                return quantity.whole(quantity.parse(amount))
            except QuantityError:
                return 0
    return 0


def _number(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
