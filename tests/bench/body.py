"""The AdmissionReviews of the benchmarks: a typical job, in the bytes that an API server sends."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from tests.bench.managed_fields import managed_fields
from tests.support.jobs import body
from tests.support.paths import EXAMPLES
from webhook.admission import pipelines
from webhook.api import review
from webhook.api.yaml import load_all
from webhook.cluster.view import NothingKnown

_EXAMPLE = load_all((EXAMPLES / "horovod-gpu.yaml").read_text())[0]
JOBS = 100
"""The number of jobs in a file of reviews. They differ in team, size and arguments."""
MARK = "987654321"
"""A part of the names of jobs and data, which the load generator replaces by the number of the request."""
_POLICY = pipelines.load_policy(None)
CREATED = "2026-03-02T09:30:00Z"
# The defaults of the CRD's schema, which the API server sets before it calls webhooks.
_SPEC_DEFAULTS = {
    "launcherCreationPolicy": "AtStartup",
    "mpiImplementation": "OpenMPI",
    "runLauncherAsWorker": False,
    "slotsPerWorker": 1,
    "sshAuthMountPath": "/root/.ssh",
}


def user_job(number: int, run: str = MARK) -> dict[str, Any]:
    """The project's Horovod example with usual additions: data, caches, secrets, placement.

    `number` selects the namespace and size. `run` is part of the job's name, images, paths and arguments.
    """
    job: dict[str, Any] = copy.deepcopy(_EXAMPLE)
    job["metadata"] |= {"name": f"resnet-{run}", "namespace": f"team-{number:04}"}
    job["metadata"]["labels"] |= {"app.kubernetes.io/part-of": "image-models", "cost-centre": f"{4000 + number}"}
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        _furnish(replica["template"], run)
    launcher, worker = (job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"] for role in ("Launcher", "Worker"))
    passed_on = [word for name in ("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS") for word in ("-x", name)]
    launcher["containers"][0]["args"][:0] = passed_on
    launcher["containers"][0]["args"] += ["--dataset", f"/data/imagenet-{run}"]
    memory = f"{64 + number}Gi"
    for amounts in worker["containers"][0]["resources"].values():
        amounts["memory"] = memory
    return job


def _furnish(template: dict[str, Any], run: str) -> None:
    template["metadata"] = {"labels": {"app.kubernetes.io/name": "resnet", "app.kubernetes.io/part-of": "image-models"}}
    spec = template["spec"]
    container = spec["containers"][0]
    container["image"] = f"registry.example.com/vision/horovod:0.28.{run}"
    settings = {
        "NCCL_DEBUG": "INFO",
        "NCCL_IB_HCA": "mlx5_0,mlx5_1",
        "NCCL_SOCKET_IFNAME": "eth0",
        "HOROVOD_FUSION_THRESHOLD": "67108864",
        "OMP_NUM_THREADS": "4",
        "DATA_DIR": f"/data/imagenet-{run}",
        "CHECKPOINT_DIR": "/checkpoints/resnet",
    }
    secret = {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "tracking", "key": "api-key"}}}
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}
    container["env"] = [*({"name": name, "value": value} for name, value in settings.items()), secret, node]
    container["imagePullPolicy"] = "IfNotPresent"
    container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    mounts = {"data": "/data", "checkpoints": "/checkpoints", "config": "/etc/training"}
    container.setdefault("volumeMounts", []).extend(
        {"name": name, "mountPath": path, **({"readOnly": True} if name != "checkpoints" else {})}
        for name, path in mounts.items()
    )
    spec.setdefault("volumes", []).extend(
        [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
            {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}},
            {"name": "config", "configMap": {"name": "resnet-config"}},
        ]
    )
    spec["initContainers"] = [
        {
            "name": "wait-for-data",
            "image": "busybox:1.37",
            "command": ["sh", "-c", f"until test -f /data/imagenet-{run}/READY; do sleep 2; done"],
            "resources": {name: {"cpu": "100m", "memory": "64Mi"} for name in ("requests", "limits")},
            "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
        }
    ]
    spec["imagePullSecrets"] = [{"name": "registry"}]
    spec["priorityClassName"] = "training"
    spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def with_crd_defaults(job: Mapping[str, Any]) -> dict[str, Any]:
    defaulted = copy.deepcopy(dict(job))
    spec = _SPEC_DEFAULTS | defaulted["spec"]
    spec["runPolicy"] = {"suspend": False} | spec.get("runPolicy", {})
    return defaulted | {"spec": spec}


def mutate_bodies() -> bytes:
    """JOBS lines, each with a review of a different job."""
    return b"".join(mutate_body(user_job(number)) + b"\n" for number in range(JOBS))


def validate_bodies() -> bytes:
    return b"".join(validate_body(user_job(number)) + b"\n" for number in range(JOBS))


def mutate_body(job: Mapping[str, Any]) -> bytes:
    """The request of the mutating hook for `kubectl create`: the job with schema defaults and managedFields."""
    defaulted = with_crd_defaults(job)
    entry = {
        "apiVersion": job["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": managed_fields(defaulted),
        "manager": "kubectl-create",
        "operation": "Update",
        "time": CREATED,
    }
    defaulted["metadata"]["managedFields"] = [entry]
    return _review(defaulted)


def validate_body(job: Mapping[str, Any]) -> bytes:
    """The request of the validating hook: the job with this service's changes and the uid that the API server sets.

    The managedFields are the same as in the mutating review, because the API server updates them later.
    """
    request = review.decode(mutate_body(job))
    decision = pipelines.mutate(request, policy=_POLICY, view=NothingKnown())
    if decision.document is None:
        raise ValueError(f"the job of the benchmarks was not mutated: {decision.skipped}")
    changed = decision.document
    created: dict[str, Any] = {"creationTimestamp": CREATED, "generation": 1, "uid": _uid("8000")}
    created["managedFields"] = json.loads(bytes(request.object))["metadata"]["managedFields"]
    return _review(changed | {"metadata": changed["metadata"] | created})


def _review(job: Mapping[str, Any]) -> bytes:
    """An AdmissionReview as the API server writes it: the object with sorted keys."""
    namespace = job["metadata"]["namespace"]
    group, version = job["apiVersion"].split("/")
    kind = {"group": group, "version": version, "kind": job["kind"]}
    resource = {"group": group, "version": version, "resource": "mpijobs"}
    user = {
        "username": f"system:serviceaccount:{namespace}:pipeline",
        "uid": "0c7c2f61-6a9b-4b0c-8a86-2f7a1f3d9c52",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=7f2c9c3a-6c2e-49a5-b3f4-0b7f2d1c8e5d"]},
    }
    options = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    options |= {"fieldManager": "kubectl-create", "fieldValidation": "Strict"}
    fields = {"uid": _uid("9000"), "requestKind": kind, "requestResource": resource, "userInfo": user}
    return body(json.loads(json.dumps(job, sort_keys=True)), options=options, **fields)


def _uid(kind: str) -> str:
    return f"3f2b6c1e-5d0a-4c7b-{kind}-7a1{MARK}"
