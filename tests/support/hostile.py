"""MPIJobs that are large in one field. `SHAPES[name](n)` is a job of about `n` bytes.

`strings(n)` yields jobs with a text of `n` bytes in one field, for every text field that the service reads.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.jobs import changed
from tests.support.strategies import COMPLETE, parent_of, paths
from webhook.api.annotations import INJECTED

Job = dict[str, Any]
Make = Callable[[int], Job]

SPEC = "Worker.template.spec"
CONTAINER = f"{SPEC}.containers.0"
LAUNCHED = "Launcher.template.spec.containers.0"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE = f"{SPEC}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
_POD = f"{SPEC}.affinity.podAffinity.{REQUIRED}"


def _many(path: str, size: int, make: Callable[[int], Any]) -> Make:
    """A list at `path` with items of about `size` bytes."""
    return lambda length: changed({path: [make(index) for index in range(max(length // size, 1))]})


def _keys(path: str, size: int, value: Any, *, key: str = "x.example.com/k{}") -> Make:
    """A mapping at `path` with entries of about `size` bytes."""
    return lambda length: changed({path: {key.format(index): value for index in range(max(length // size, 1))}})


def _long_words(length: int) -> Job:
    """Commands with `length` bytes in total. Each has a word of about 120 kB, which the rule `job-size` admits."""
    count = min(max(length // 120_000, 1), 8)
    container = {**_container(0), "command": ["x " + "y" * (length // count)]}
    return changed({f"{SPEC}.containers": [container] * count})


def _nested(length: int, wrapped: Callable[[Any], Any]) -> list[Any]:
    """Values with `length` bytes in total. Each is nested 200 levels deep, which JSON parsers accept."""
    value: Any = 0
    for _ in range(200):
        value = wrapped(value)
    return [value] * max(length // 800, 1)


def _mappings(length: int) -> list[Any]:
    return _nested(length, lambda value: {"a": value})


def _script(begin: str, word: str) -> Make:
    """A launcher script of `length` bytes."""
    return lambda length: changed(
        {f"{LAUNCHED}.command": ["sh", "-c", begin + word * (length // len(word))], f"{LAUNCHED}.args": []}
    )


def _container(index: int) -> Job:
    return {"name": f"c{index}", "image": "registry.example.com/ml/train:1.4", "resources": {"limits": {"cpu": "1"}}}


def _expression(index: int) -> Job:
    return {"key": f"x.example.com/k{index}", "operator": "In", "values": ["a"]}


def _exports(length: int) -> str:
    """A script of `length` characters with few calls of mpirun. Each call exports variables by many patterns."""
    words = [f"{'mpirun ' if index % 330 == 0 else ''}-x {index:x}*" for index in range(length // 8)]
    return "\n".join(f"{' '.join(words[start : start + 330])} a" for start in range(0, len(words), 330))


def _claim(**resources: Any) -> Job:
    claim = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}}
    return changed({f"{SPEC}.volumes": [{"name": "v", "ephemeral": claim}]})


SHAPES: Mapping[str, Make] = {
    "containers": _many(f"{SPEC}.containers", 100, _container),
    "init containers": _many(f"{SPEC}.initContainers", 100, _container),
    "containers of one name": _many(f"{SPEC}.containers", 100, lambda index: _container(0)),
    "containers without resources": _many(f"{SPEC}.containers", 12, lambda index: {"name": f"c{index}"}),
    "empty containers": _many(f"{SPEC}.containers", 4, lambda index: {}),
    "env": _many(f"{CONTAINER}.env", 30, lambda index: {"name": f"N{index}", "value": "x"}),
    "env from ConfigMaps": _many(
        f"{CONTAINER}.env",
        80,
        lambda index: {"name": f"N{index}", "valueFrom": {"configMapKeyRef": {"name": f"train-{index}", "key": "k"}}},
    ),
    "env of ranks": _many(f"{CONTAINER}.env", 40, lambda index: {"name": f"OMPI_MCA_x{index}", "value": "x"}),
    "envFrom": _many(f"{CONTAINER}.envFrom", 40, lambda index: {"configMapRef": {"name": f"train-{index}"}}),
    "volumes": _many(f"{SPEC}.volumes", 30, lambda index: {"name": f"v{index}", "emptyDir": {}}),
    "volumes from ConfigMaps": _many(
        f"{SPEC}.volumes", 50, lambda index: {"name": f"v{index}", "configMap": {"name": f"train-{index}"}}
    ),
    "claims": _many(
        f"{SPEC}.volumes", 60, lambda i: {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"train-{i}"}}
    ),
    "hostPath volumes": _many(
        f"{SPEC}.volumes", 50, lambda index: {"name": f"v{index}", "hostPath": {"path": f"/dev/{index}"}}
    ),
    "projected sources": lambda length: changed(
        {
            f"{SPEC}.volumes": [
                {"name": "v", "projected": {"sources": [{"configMap": {"name": f"c{i}"}} for i in range(length // 30)]}}
            ]
        }
    ),
    "mounts": _many(f"{CONTAINER}.volumeMounts", 40, lambda index: {"name": f"v{index}", "mountPath": f"/m/{index}"}),
    "ports": _many(f"{CONTAINER}.ports", 30, lambda index: {"containerPort": index % 65535, "name": f"p{index}"}),
    "host ports": _many(f"{CONTAINER}.ports", 30, lambda index: {"containerPort": 22, "hostPort": index % 65535}),
    "command": _many(f"{CONTAINER}.command", 5, lambda index: "-x"),
    "mpirun line": _many(f"{LAUNCHED}.command", 6, lambda i: "mpirun" if i == 0 else "-x=A"),
    "mpirun variables": _many(f"{LAUNCHED}.command", 12, lambda i: "mpirun" if i == 0 else "-x" if i % 2 else f"A{i}"),
    "mpirun script": _script("mpirun ", "-v "),
    "mpirun among the words of mpirun": _script("env mpirun " * 20, "ab "),
    "mpirun among the options of mpirun": _script("mpirun " + "--mca env mpirun " * 19, "-v "),
    "characters of four bytes": lambda length: changed({f"{CONTAINER}.command": ["\N{ROCKET}" + "x" * length]}),
    "resources": _keys(f"{CONTAINER}.resources.limits", 24, "1"),
    "accelerators": _keys(f"{CONTAINER}.resources.limits", 24, "1", key="nvidia.com/gpu{}"),
    "tolerations": _many(f"{SPEC}.tolerations", 50, lambda index: {"key": f"k{index}", "operator": "Exists"}),
    "nodeSelector": _keys(f"{SPEC}.nodeSelector", 26, "v"),
    "node terms": _many(_NODE, 90, lambda index: {"matchExpressions": [_expression(index)]}),
    "node expressions": lambda length: changed(
        {_NODE: [{"matchExpressions": [_expression(index) for index in range(length // 60)]}]}
    ),
    "node expression values": lambda length: changed(
        {
            _NODE: [
                {
                    "matchExpressions": [
                        {"key": "pool", "operator": "In", "values": [str(i) for i in range(length // 9)]}
                    ]
                }
            ]
        }
    ),
    "pod affinity terms": _many(_POD, 60, lambda index: {"topologyKey": f"x.example.com/k{index}"}),
    "topology spread": _many(
        f"{SPEC}.topologySpreadConstraints",
        80,
        lambda index: {"maxSkew": 1, "topologyKey": f"k{index}", "whenUnsatisfiable": "DoNotSchedule"},
    ),
    "pull secrets": _many(f"{SPEC}.imagePullSecrets", 16, lambda index: {"name": f"s{index}"}),
    "resource claims": _many(
        f"{SPEC}.resourceClaims", 40, lambda index: {"name": f"r{index}", "resourceClaimTemplateName": "x"}
    ),
    "capabilities": _many(f"{CONTAINER}.securityContext.capabilities.add", 10, lambda index: f"CAP_{index}"),
    "sysctls": _many(f"{SPEC}.securityContext.sysctls", 40, lambda index: {"name": f"kernel.x{index}", "value": "1"}),
    "labels": _keys("metadata.labels", 26, "v"),
    "annotations": _keys("metadata.annotations", 26, "v"),
    "pod labels": _keys("Worker.template.metadata.labels", 26, "v"),
    "pod annotations": _keys("Worker.template.metadata.annotations", 26, "v"),
    "networks": lambda length: changed(
        {"Worker.template.metadata.annotations": {"k8s.v1.cni.cncf.io/networks": "a/b," * (length // 4)}}
    ),
    "a list of injections": lambda length: changed({"metadata.annotations": {INJECTED: "istio," * (length // 6)}}),
    "words with blanks": _long_words,
    "claim requests": lambda length: _claim(requests={f"k{index}": "1" for index in range(length // 13)}),
    "claim limits that are no quantities": lambda length: _claim(
        limits={f"k{index}": "x" for index in range(length // 13)}
    ),
    "exports and variables": lambda length: changed(
        {
            f"{LAUNCHED}.command": ["sh", "-c", _exports(min(length // 2, 32_000))],
            f"{LAUNCHED}.env": [{"name": f"NCCL_{index}", "value": "1"} for index in range(min(length // 80, 1000))],
        }
    ),
    "owners": _many("metadata.ownerReferences", 30, lambda index: {"kind": "Pod", "name": f"p{index}"}),
    "replica keys": lambda length: changed(
        {f"spec.mpiReplicaSpecs.r{index}": {"replicas": 1} for index in range(max(length // 26, 1))}
    ),
    "empty replica keys": lambda length: changed(
        {f"spec.mpiReplicaSpecs.r{index}": None for index in range(max(length // 16, 1))}
    ),
    "unknown fields": lambda length: changed({f"spec.u{index}": 1 for index in range(max(length // 12, 1))}),
    "minimum resources": _keys("spec.runPolicy.schedulingPolicy.minResources", 24, "1"),
    "deep lists": lambda length: changed({"spec.x": _nested(length, lambda value: [value])}),
    "deep mappings": lambda length: changed({"spec.x": _mappings(length)}),
    "deep claims": lambda length: changed({f"{SPEC}.resourceClaims": _mappings(length)}),
    "deep amounts": lambda length: changed({f"{CONTAINER}.resources.limits.cpu": _mappings(length)}),
}


def strings(length: int) -> Iterator[tuple[str, Job]]:
    """(path, job) for each text field, with a text of `length` characters in this field."""
    job = changed(base=COMPLETE)
    for path in paths(job):
        parent, last = parent_of(job, path), path[-1]
        if not isinstance(parent[last], str):
            continue
        for text in ("x" * length, "x]." * (length // 3)):
            was, parent[last] = parent[last], text
            yield ".".join(map(str, path)), job
            parent[last] = was
