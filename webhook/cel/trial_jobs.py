"""The jobs that expressions are tried on: a usual one, and the largest that custom rules judge."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from webhook.cel.limits import MAX_JOB_BYTES, MAX_JOB_VALUES
from webhook.kit.own_rules import Variables

_KEY: Final = re.compile(r"""(?:labels|annotations)(?:\.\??(\w+)|\[\??['"]([^'"]+))""")
"""A label or annotation that an expression names: `labels.team`, `labels[?'example.com/team']`."""


def usual(params: Mapping[str, Any]) -> Variables:
    """A job with all that most jobs have."""
    kind = {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"}
    resource = {"group": "kubeflow.org", "version": "v2beta1", "resource": "mpijobs"}
    return Variables(
        object=msgspec.Raw(msgspec.json.encode(_JOB)),
        request={
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": "sample",
            "namespace": "sample",
            "operation": "CREATE",
            "userInfo": {"username": "sample", "groups": ["system:authenticated"]},
            "dryRun": False,
        },
        namespace_object={
            "metadata": {"name": "sample", "labels": {"kubernetes.io/metadata.name": "sample"}, "annotations": {}}
        },
        params=params,
        job={
            "workers": 2,
            "gpusPerWorker": 1,
            "totalGpus": 2,
            "slots": 1,
            "images": ["registry.example.com/train:1"],
            "accelerator": "nvidia.com/gpu",
            "queue": "",
        },
    )


def largest(source: str) -> dict[str, Any]:
    """A job whose lists, mappings and texts are each as large as in any job that custom rules judge.

    An expression reads few of them, so their sum may be beyond that. The labels and annotations that `source` names
    have long texts.
    """
    job: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(_JOB))
    replica = job["spec"]["mpiReplicaSpecs"]["Worker"]
    (rich,) = replica["template"]["spec"]["containers"]
    rich |= {
        "image": _TEXT,
        "command": ["", *[_TEXT] * 2],
        "args": [_TEXT, *["a"] * MAX_JOB_VALUES],
        **{name: [item] * (MAX_JOB_VALUES // (1 + len(item))) for name, item in _OF_CONTAINER.items()},
    }
    rich["env"][0] = {"name": "A", "value": _TEXT}
    containers = [rich, *[_CONTAINER] * (MAX_JOB_VALUES // 7)]  # 7 values each
    replica["template"]["spec"] |= {
        "containers": containers,
        "initContainers": containers,
        "nodeSelector": _MAPPING,
        **{name: [item] * (MAX_JOB_VALUES // (1 + len(item))) for name, item in _OF_POD.items()},
    }
    labels = _MAPPING | dict.fromkeys(map("".join, _KEY.findall(source)), _TEXT)
    job["metadata"] |= {"labels": labels, "annotations": labels}
    replica["template"]["metadata"] = {"labels": labels, "annotations": labels}
    return job


def _replica(role: str, replicas: int, limits: dict[str, Any]) -> dict[str, Any]:
    container = {
        "name": role,
        "image": "registry.example.com/train:1",
        "command": ["mpirun", "train"],
        "args": [],
        "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": limits, "requests": limits},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "securityContext": {},
    }
    spec = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}], "securityContext": {}}
    metadata: dict[str, Any] = {"labels": {}, "annotations": {}}
    return {"replicas": replicas, "restartPolicy": "Never", "template": {"metadata": metadata, "spec": spec}}


_JOB: Final[dict[str, Any]] = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"name": "sample", "namespace": "sample", "labels": {}, "annotations": {}},
    "spec": {
        "slotsPerWorker": 1,
        "runPolicy": {"cleanPodPolicy": "Running", "suspend": False},
        "mpiReplicaSpecs": {
            "Launcher": _replica("launcher", 1, {"cpu": "1", "memory": "1Gi"}),
            "Worker": _replica("worker", 2, {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}),
        },
    },
}
# Runs on which a pattern may start at every character, and many parts to split it into.
_TEXT: Final = ("a" * (MAX_JOB_BYTES // 4) + "1" * (MAX_JOB_BYTES // 4) + "/a.1-b,:" * MAX_JOB_BYTES)[:MAX_JOB_BYTES]
_MAPPING: Final = {f"example.com/{number}": "a" for number in range(MAX_JOB_VALUES)}
_CONTAINER: Final = {
    "name": "worker",
    "image": "registry.example.com/train:1",
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
}
_OF_CONTAINER: Final[dict[str, dict[str, Any]]] = {
    "env": {"name": "A", "value": "b"},
    "envFrom": {"prefix": "a"},
    "ports": {"containerPort": 1},
    "volumeMounts": {"name": "data", "mountPath": "/data"},
}
_OF_POD: Final[dict[str, dict[str, Any]]] = {
    "volumes": {"name": "data"},
    "tolerations": {"key": "a"},
    "imagePullSecrets": {"name": "a"},
    "topologySpreadConstraints": {"maxSkew": 1},
}
