"""Objects of the cluster in which bad jobs are submitted, and strict settings for rules that allow much by default."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.support.corpus import CORPUS
from tests.support.jobs import changed
from tests.support.kueue_objects import priority_class
from tests.support.limit_ranges import limit_range
from tests.support.namespaces import namespace
from webhook.cli import files

Json = dict[str, Any]
CLUSTER: Final = CORPUS / "cluster.yaml"
STORED: Final = "stored"
TAKEN: Final = "taken"
LIMITED: Final = "limits"
REGULATED: Final = "regulated"
PSA: Final = "pod-security.kubernetes.io/enforce"

TIGHT: Final[Mapping[str, Mapping[str, Any]]] = {
    "clean-pod-policy": {"allowed": ["Running", "All"]},
    "compliance": {
        "markers": {},
        "nodeLabels": {"team": "research"},
        "storageClasses": ["encrypted"],
        "requireMemoryEmptyDir": True,
        "refuseHostPath": True,
        "jobAnnotations": {"audit.example.com/owner": "research"},
        "podAnnotations": {"audit.example.com/class": "regulated"},
    },
    "gang": {"scheduler": "volcano", "maxScheduleTimeoutSeconds": 600},
    "gpus": {"min": 1, "max": 8},
    "images": {"allowedRegistries": ["registry.example.com"], "refuseLatest": True},
    "job-timeout": {"max": "2d"},
    "mpi-implementation": {"allowed": ["OpenMPI", "MPICH"]},
    "network-policy": {"posture": "restricted"},
    "priority": {"allowed": ["high", "low"], "allowedWorkload": ["batch"]},
    "retention": {"minSeconds": 600},
    "tier": {
        "name": "basic",
        "maxWorkers": 4,
        "maxGpus": 32,
        "implementations": ["OpenMPI"],
        "features": ["gangScheduling"],
    },
    "volcano-queue": {"gangScheduling": True, "hierarchy": True},
    "worker-count": {"min": 3, "max": 6},
    "slots": {"min": 2, "max": 8},
}


def objects() -> Iterator[Json]:
    """The objects of tests/corpus/cluster.yaml, additional namespaces, and objects that conflict with jobs."""
    manifests, errors = files.load([str(CLUSTER)])
    assert not errors
    for manifest in manifests:
        yield manifest.document
        if manifest.namespace == "open":
            yield from (in_namespace(manifest.document, name) for name in ("baseline", LIMITED, REGULATED))
    yield namespace("baseline", **{PSA: "baseline"})
    yield namespace(REGULATED, **{PSA: "privileged"})
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "datasets"}}
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "encrypted"}
    yield in_namespace({**claim, "spec": spec}, REGULATED)
    yield namespace(LIMITED, **{PSA: "privileged"})
    bounds = {
        "type": "Container",
        "min": {"cpu": "100m", "memory": "64Mi"},
        "max": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"},
        "default": {"cpu": "2", "memory": "2Gi"},
        "defaultRequest": {"cpu": "1", "memory": "1Gi"},
        "maxLimitRequestRatio": {"cpu": "4"},
    }
    pod = {"type": "Pod", "max": {"cpu": "96", "memory": "1Ti"}}
    yield in_namespace(limit_range("bounds", bounds, pod), LIMITED)
    yield priority_class("high")
    yield priority_class("low")
    running = {"conditions": [{"type": "Running", "status": "True"}], "startTime": "2026-01-01T00:00:00Z"}
    yield in_namespace(changed({"metadata.name": STORED, "metadata.uid": "u", "status": running}), "open")
    taken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": TAKEN}}
    yield from (in_namespace(taken, name) for name in ("open", "restricted"))


def in_namespace(document: Json, name: str) -> Json:
    return {**document, "metadata": {**document["metadata"], "namespace": name}}
