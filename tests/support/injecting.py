"""One injection at a time, through the whole pipeline."""

import copy
import json
from typing import Any

import msgspec

from tests.support.namespaces import labelled
from webhook import injections
from webhook.admission import pipelines
from webhook.admission.pipelines import Decision, Policy
from webhook.api.review import AdmissionRequest

DEFAULTS = pipelines.load_policy(None)
# Here every injection has something to do.
VIEW = labelled("team", enforce="restricted")
PATHS = {
    "Launcher": "/spec/mpiReplicaSpecs/Launcher/template",
    "Worker": "/spec/mpiReplicaSpecs/Worker/template",
    "job": "",
}


def request(job: Any, operation: Any = "CREATE") -> AdmissionRequest:
    """The API server's request about `job`, JSON text or a JSON value."""
    raw = job if isinstance(job, bytes) else json.dumps(job).encode()
    return AdmissionRequest(uid="u-1", operation=operation, namespace="team", object=msgspec.Raw(raw))


def mutate(job: Any, policy: Policy = DEFAULTS, operation: Any = "CREATE") -> Decision:
    return pipelines.mutate(request(job, operation), policy=policy, view=VIEW)


def only(injection_id: str, /, **settings: Any) -> Policy:
    """A policy with nothing but this injection."""
    entry = injections.REGISTRY[injection_id]
    return Policy(DEFAULTS.document, rules=(), injections=((entry, entry.settings.model_validate(settings)),))


def operations(injection_id: str, job: Any, /, **settings: Any) -> list[tuple[str, Any]]:
    """(JSON pointer, value) of each operation, in order."""
    decision = mutate(job, only(injection_id, **settings))
    assert not decision.skipped
    return [(str(operation["path"]), operation["value"]) for operation in decision.patch]


def inject(injection_id: str, job: Any, /, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    """What this injection alone adds, value by JSON pointer, and its notes without the id."""
    decision = mutate(job, only(injection_id, **settings))
    assert not decision.skipped
    added = {str(operation["path"]): operation["value"] for operation in decision.patch}
    return added, [note.removeprefix(f"{injection_id}: ") for note in decision.notes]


def mpijob(
    *,
    metadata: dict[str, Any] | None = None,
    run_policy: dict[str, Any] | None = None,
    launcher: dict[str, Any] | None = None,
    worker: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A job of two workers; `launcher` and `worker` are parts of the pod templates, `spec` other fields of the spec."""
    job: dict[str, Any] = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "train", **(metadata or {})},
        "spec": {
            "mpiReplicaSpecs": {
                role: {"replicas": replicas, "template": {"spec": pod_spec(), **copy.deepcopy(template or {})}}
                for role, replicas, template in (("Launcher", 1, launcher), ("Worker", 2, worker))
            },
            **spec,
        },
    }
    if run_policy is not None:
        job["spec"]["runPolicy"] = run_policy
    return job


def pod_spec(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "mpi", "image": "registry.example.com/mpi:1"}], **fields}
