"""Functions that make a job's objects in the form in which the API server sends them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.support.jobs import changed
from webhook.parts.why.sight import Sight

Json = dict[str, Any]
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
UID, JOB_UID = "11111111-0000-4000-8000-000000000000", "22222222-0000-4000-8000-000000000000"
HOUR_AGO = "2026-11-22T11:00:00Z"


def job(changes: Mapping[str, Any] | None = None, *conditions: Json) -> Json:
    """The job `train` with two workers, an hour old."""
    metadata = {"name": "train", "namespace": "team-a", "uid": UID, "creationTimestamp": HOUR_AGO}
    status = {"conditions": [true("Created"), *conditions], "startTime": HOUR_AGO}
    return changed({"metadata": metadata, "Worker.replicas": 2, "status": status, **(changes or {})})


def true(kind: str, reason: str = "", message: str = "") -> Json:
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": HOUR_AGO}


def false(kind: str, reason: str = "", message: str = "") -> Json:
    return {**true(kind, reason, message), "status": "False"}


def launcher(*conditions: Json, failed: int = 0, **spec: Any) -> Json:
    status = {"conditions": list(conditions), "failed": failed, "startTime": HOUR_AGO}
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train", "uid": UID, "controller": True}
    metadata = {"name": "train-launcher", "namespace": "team-a", "uid": JOB_UID, "ownerReferences": [owner]}
    return {"kind": "Job", "metadata": metadata, "spec": {"backoffLimit": 6, **spec}, "status": status}


def pod(name: str, *statuses: Json, phase: str = "Running", node: str = "n", **changes: Any) -> Json:
    """A pod of the job. If `statuses` is empty, a running pod is ready."""
    role = "worker" if "worker" in name else "launcher"
    conditions = changes.pop("conditions", [true("Ready")] if not statuses and phase == "Running" else [])
    inits = changes.pop("inits", [])
    return {
        "metadata": {"name": name, "labels": {"training.kubeflow.org/job-role": role}, "creationTimestamp": HOUR_AGO},
        "spec": {"nodeName": node, **changes},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": list(statuses),
            "initContainerStatuses": inits,
        },
    }


def container(**state: Any) -> Json:
    """The status of the container `main`: `waiting`, `running` or `terminated`."""
    return {"name": "main", "image": "registry.example.com/a:1", "state": state}


def event(about: str, reason: str, message: str, *, kind: str = "MPIJob", at: str = HOUR_AGO, **fields: Any) -> Json:
    return {
        "involvedObject": {"kind": kind, "name": about},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
        **fields,
    }


def workload(*conditions: Json, **fields: Any) -> Json:
    metadata = {"name": "mpijob-train-1", "creationTimestamp": HOUR_AGO}
    status = {"conditions": list(conditions), **fields.pop("status", {})}
    return {"metadata": metadata, "spec": {"queueName": "gpu", **fields}, "status": status}


def sight(**fields: Any) -> Sight:
    """The objects of a job whose launcher and workers run, with these changes."""
    pods = [pod("train-launcher-abcde"), pod("train-worker-0"), pod("train-worker-1")]
    everything: dict[str, Any] = {"now": NOW, "job": job(), "launcher": launcher(), "pods": pods}
    return Sight(**(everything | fields))
