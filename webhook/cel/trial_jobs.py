"""The jobs of a trial: a usual job, and the largest job that custom rules may evaluate."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from webhook.cel.limits import MAX_JOB_BYTES, MAX_JOB_VALUES
from webhook.kit.custom_rules import Variables

_KEY: Final = re.compile(r"""(?:labels|annotations)(?:\.\??(\w+)|\[\??['"]([^'"]+))""")
"""A label or annotation in an expression, such as `labels.team` or `labels[?'example.com/team']`."""


def usual(params: Mapping[str, Any]) -> Variables:
    """A job with the fields that most jobs have."""
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
    """A job in which each list, mapping and text has the maximum size. The whole job may exceed MAX_JOB_BYTES.

    The first item of each list has long texts. The labels and annotations that `source` names have long values.
    """
    job: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(_JOB))
    replica = job["spec"]["mpiReplicaSpecs"]["Worker"]
    (rich,) = replica["template"]["spec"]["containers"]
    rich |= {
        "name": _TEXT,
        "image": _TEXT,
        "workingDir": _TEXT,
        "command": ["", *[_TEXT] * 2],
        "args": [_TEXT, *["a"] * MAX_JOB_VALUES],
        **_lists(_OF_CONTAINER),
    }
    containers = [rich, *[_CONTAINER] * (MAX_JOB_VALUES // 7)]  # each container has 7 values
    replica["template"]["spec"] |= {
        "containers": containers,
        "initContainers": containers,
        "nodeSelector": _MAPPING,
        **dict.fromkeys(_TEXTS_OF_POD, _TEXT),
        **_lists(_OF_POD),
    }
    labels = _MAPPING | dict.fromkeys(map("".join, _KEY.findall(source)), _TEXT)
    job["metadata"] |= {"name": _TEXT, "labels": labels, "annotations": labels}
    replica["template"]["metadata"] = {"labels": labels, "annotations": labels}
    return job


def largest_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {**facts, "images": [_TEXT, *["a"] * (MAX_JOB_VALUES // 3)], "accelerator": _TEXT, "queue": _TEXT}


def _lists(items: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """For each item, a list of maximum length. The first item of the list has long texts."""
    return {
        name: [
            {key: _TEXT if isinstance(value, str) else value for key, value in item.items()},
            *[item] * (MAX_JOB_VALUES // (1 + len(item)) - 1),
        ]
        for name, item in items.items()
    }


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
# This text is expensive for an expression that searches for a pattern or splits the text: it has long runs of one
# character, and many separators.
_TEXT: Final = ("a" * (MAX_JOB_BYTES // 4) + "1" * (MAX_JOB_BYTES // 4) + "/a.1-b,:" * MAX_JOB_BYTES)[:MAX_JOB_BYTES]
_MAPPING: Final = {_TEXT: "a", "example.com/0": _TEXT} | {f"example.com/{n}": "a" for n in range(1, MAX_JOB_VALUES)}
_TEXTS_OF_POD: Final = ("schedulerName", "serviceAccountName", "priorityClassName", "runtimeClassName", "hostname")
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
