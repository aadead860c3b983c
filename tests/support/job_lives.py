"""MPIJobs and their launchers in all phases, as the API server stores them."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from tests.support.logs import Log
from webhook.client.store import Kind
from webhook.client.watch import Watch
from webhook.client.wire import Metadata
from webhook.cluster.job_lives import JobLife, Launcher, job_life, launcher
from webhook.cluster.resource import ByNamespace, T

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
HOUR = 3600.0


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, status: str = "True", *, at: float = START, reason: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": moment(at)}


def mpijob(
    name: str = "train",
    *conditions: dict[str, Any],
    namespace: str = "team-a",
    uid: str = "",
    annotations: dict[str, str] | None = None,
    started: float | None = None,
    completed: float | None = None,
    **policy: Any,
) -> dict[str, Any]:
    """An MPIJob that was created at START."""
    status: dict[str, Any] = {"conditions": list(conditions)}
    if started is not None:
        status["startTime"] = moment(started)
    if completed is not None:
        status["completionTime"] = moment(completed)
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"}
    metadata["creationTimestamp"] = moment(START)
    if annotations is not None:
        metadata["annotations"] = {f"training.openshift.io/{key}": value for key, value in annotations.items()}
    return {"metadata": metadata, "spec": {"runPolicy": policy}, "status": status}


def life(*args: Any, **kwargs: Any) -> JobLife:
    """The cached record of the `mpijob` with these arguments."""
    return job_life(json.dumps(mpijob(*args, **kwargs)).encode())


def kubernetes_job(
    name: str = "train-launcher",
    *conditions: dict[str, Any],
    owner: str = "uid-train",
    kind: str = "MPIJob",
    started: float | None = START,
    limit: int | None = None,
    suspend: bool | None = None,
) -> dict[str, Any]:
    references = [
        {"apiVersion": "kubeflow.org/v2beta1", "kind": kind, "name": "train", "uid": owner, "controller": True}
    ]
    return {
        "metadata": {"name": name, "namespace": "team-a", "ownerReferences": references},
        "spec": {"activeDeadlineSeconds": limit, "suspend": suspend},
        "status": {"startTime": None if started is None else moment(started), "conditions": list(conditions)},
    }


def launcher_of(*args: Any, **kwargs: Any) -> Launcher | None:
    """The cached record of the `kubernetes_job` with these arguments."""
    return launcher(json.dumps(kubernetes_job(*args, **kwargs)).encode())


class Seen(Watch[ByNamespace, T]):
    """A watch without a connection: a test supplies its events."""

    known: bool = True  # type: ignore[assignment]  # tests set it

    def __init__(self, kind: Kind[ByNamespace, T]) -> None:
        super().__init__(kind, None, log=Log())  # type: ignore[arg-type]  # nothing is read

    def list(self, *objects: dict[str, Any]) -> None:
        contents = self.store.contents()
        self.store.read([msgspec.Raw(json.dumps(each).encode()) for each in objects], contents)
        self.store.replace(contents)

    def put(self, document: dict[str, Any]) -> None:
        self.store.put(_metadata(document), msgspec.Raw(json.dumps(document).encode()))

    def remove(self, document: dict[str, Any]) -> None:
        self.store.remove(_metadata(document))


def _metadata(document: dict[str, Any]) -> Metadata:
    return Metadata(document["metadata"]["name"], document["metadata"]["namespace"], "1")
