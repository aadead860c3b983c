"""TrainJobs, and runtimes like the runtimes that Kubeflow Trainer installs."""

import copy
import json
from collections.abc import Mapping
from datetime import date
from typing import Any

import msgspec

from tests.support.policies import HEADER
from webhook.admission.decision import Decision
from webhook.api.review import AdmissionRequest, GroupVersionKind, UserInfo
from webhook.cluster.view import ABSENT, UNKNOWN, Answer, ClusterView, NothingKnown
from webhook.parts.trainer import kinds, pipeline
from webhook.parts.trainer.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    RUNTIMES,
    TRAINING_RUNTIMES,
    TrainingRuntime,
)
from webhook.policy.in_force import load_policies

Manifest = dict[str, Any]
TODAY = date(2026, 1, 1)
NODE, LAUNCHER = 0, 1
"""The indices of the replicated jobs."""


def runtime(kind: str = kinds.CLUSTER_RUNTIME, name: str = "deepspeed", **mpi: Any) -> Manifest:
    """A runtime like Trainer's `deepspeed-distributed`, with these fields of the MPI policy."""
    container = {"name": "node", "image": "registry.example.com/deepspeed:1.0", "securityContext": {"runAsUser": 1000}}
    sshd = {"command": ["/usr/sbin/sshd"], "args": ["-De", "-f", "/home/mpiuser/.sshd_config"]}
    launcher_labels = {"metadata": {"labels": {kinds.ANCESTOR: kinds.OF_TRAINER}}}
    policy = {
        "numProcPerNode": 1,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": "/home/mpiuser/.ssh",
        "runLauncherAsNode": True,
    }
    return {
        "apiVersion": kinds.API_VERSION,
        "kind": kind,
        "metadata": {"name": name, **({"namespace": "team"} if kind == kinds.RUNTIME else {})},
        "spec": {
            "mlPolicy": {"numNodes": 1, "mpi": {**policy, **mpi}},
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {"name": "node", "replicas": 1, "template": _pods({**container, **sshd})},
                        {
                            "name": "launcher",
                            "replicas": 1,
                            "dependsOn": [{"name": "node", "status": "Ready"}],
                            "template": {**launcher_labels, **_pods(container)},
                        },
                    ],
                    "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
                }
            },
        },
    }


def train_job(*, runtime: str = "deepspeed", patches: list[Manifest] | None = None, **fields: Any) -> Manifest:
    """A TrainJob. `fields` are the fields of `spec.trainer`, and `patches` are its runtime patches."""
    spec: Manifest = {"runtimeRef": {"name": runtime}}
    if fields:
        spec["trainer"] = fields
    if patches:
        spec["runtimePatches"] = patches
    return {
        "apiVersion": kinds.API_VERSION,
        "kind": kinds.TRAIN_JOB,
        "metadata": {"name": "job", "namespace": "team"},
        "spec": spec,
    }


def patch(job: str, pod: Manifest, **metadata: Any) -> Manifest:
    """A runtime patch for the pods of a replicated job. `metadata` patches the metadata of the Job."""
    template: Manifest = {"spec": {"template": {"spec": pod}}}
    if metadata:
        template["metadata"] = metadata
    jobs = [{"name": job, "template": template}]
    return {"manager": "example.com/team", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


def replicated_job(manifest: Manifest, index: int) -> Manifest:
    job: Manifest = manifest["spec"]["template"]["spec"]["replicatedJobs"][index]
    return job


def pods(manifest: Manifest, index: int) -> Manifest:
    """The pod spec of a replicated job of the runtime."""
    spec: Manifest = replicated_job(manifest, index)["template"]["spec"]["template"]["spec"]
    return spec


def record(manifest: Manifest) -> TrainingRuntime:
    resource = TRAINING_RUNTIMES if manifest["kind"] == kinds.RUNTIME else CLUSTER_TRAINING_RUNTIMES
    cached = resource.project(msgspec.json.encode(manifest))
    assert cached is not None
    return cached


class Runtimes(NothingKnown):
    """A view with only these runtimes. Everything else is unknown."""

    def __init__(self, *manifests: Manifest) -> None:
        self._known: Mapping[tuple[str, str], TrainingRuntime] = {
            (each["kind"], each["metadata"]["name"]): record(each) for each in manifests
        }

    def get(self, resource: Any, key: Any) -> Any:
        if resource not in RUNTIMES:
            return UNKNOWN
        name = key[1] if resource is TRAINING_RUNTIMES else key
        cached: TrainingRuntime | Answer = self._known.get((resource.kind, name), ABSENT)
        return cached


def review(
    manifest: Manifest,
    *,
    old: Manifest | None = None,
    kind: str = "",
    version: str = kinds.API_VERSION,
    username: str = "ann",
) -> AdmissionRequest:
    """The review of the object's creation. If `old` is given, the review of an update of `old` to the object."""
    group, _, number = version.partition("/")
    return AdmissionRequest(
        uid="1",
        operation="CREATE" if old is None else "UPDATE",
        kind=GroupVersionKind(group=group, version=number, kind=kind or manifest["kind"]),
        name=manifest["metadata"].get("name", ""),
        namespace=manifest["metadata"].get("namespace", ""),
        user_info=UserInfo(username=username),
        object=msgspec.Raw(json.dumps(manifest).encode()),
        old_object=msgspec.Raw(json.dumps(old).encode()),
    )


def decide(
    manifest: Manifest,
    *runtimes: Manifest,
    policy: str = "",
    view: ClusterView | None = None,
    granted: Mapping[str, bool] | None = None,
    **changes: Any,
) -> Decision:
    """The verdict on the object with only these runtimes in the view."""
    return pipeline.decide(
        review(manifest, **changes),
        policies=load_policies(HEADER + policy if policy else None),
        view=view or Runtimes(*runtimes),
        today=TODAY,
        granted=granted,
    )


def refused(decision: Decision) -> list[tuple[str, str, str, str]]:
    """(path, message, fix, rule) for each violation."""
    return [(each.violation.path, each.violation.message, each.violation.fix, each.rule) for each in decision.denied]


def _pods(container: Manifest) -> Manifest:
    pod = {"securityContext": {"fsGroup": 1000}, "containers": [copy.deepcopy(container)]}
    return {"spec": {"template": {"spec": pod}}}
