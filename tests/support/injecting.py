"""Runs one or all injections with the whole pipeline. `inject` and `operations` check the properties of injections.

For each injection, `examples` has a job, settings and a cluster with which the injection injects a value. The test file
of an injection must define `EXAMPLE` if the injection, with its default settings, injects nothing into the job
`strategies.COMPLETE`.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from tests.support.namespaces import labelled
from tests.support.promises import has_valid_pods, keep, without_defaults
from tests.support.strategies import COMPLETE
from webhook import injections
from webhook.admission import pipelines
from webhook.admission.mutate.updates import KUBECTL_APPLY, LAST_APPLIED
from webhook.admission.pipelines import Decision, Policy
from webhook.api.annotations import INJECTED
from webhook.api.review import AdmissionRequest, UserInfo
from webhook.api.untyped import at
from webhook.cluster.view import ClusterView

DEFAULTS = pipelines.load_policy(None)
TOLD = DEFAULTS.document.model_copy(update={"injection_warnings": "each"})
VIEW = labelled("team", enforce="restricted")
PATHS = {
    "Launcher": "/spec/mpiReplicaSpecs/Launcher/template",
    "Worker": "/spec/mpiReplicaSpecs/Worker/template",
    "job": "",
}


@dataclass(frozen=True)
class Example:
    """A job and settings for which an injection injects a value."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """The injection's settings, as in a policy."""
    job: Mapping[str, Any] = field(default_factory=lambda: COMPLETE)
    view: ClusterView = VIEW


def request(job: Any, operation: Any = "CREATE", stored: Any = None, manager: str = KUBECTL_APPLY) -> AdmissionRequest:
    """The API server's request for `job`, which is JSON text or a JSON value."""
    raw = job if isinstance(job, bytes) else json.dumps(job).encode()
    return AdmissionRequest(
        uid="u-1",
        operation=operation,
        namespace="team",
        object=msgspec.Raw(raw),
        old_object=msgspec.Raw(json.dumps(stored).encode()),
        options=msgspec.Raw(json.dumps({"fieldManager": manager}).encode()),
        user_info=UserInfo("alice"),
    )


def mutate(
    job: Any,
    policy: Policy = DEFAULTS,
    operation: Any = "CREATE",
    *,
    view: ClusterView = VIEW,
    stored: Any = None,
    manager: str = KUBECTL_APPLY,
) -> Decision:
    return pipelines.mutate(request(job, operation, stored, manager), policy=policy, view=view)


def hold(job: Any, policy: Policy = DEFAULTS, *, view: ClusterView = VIEW) -> Decision:
    """Mutate a job, which is a JSON value, and check the properties that the decision must have for every job."""
    decision = mutate(job, policy, view=view)
    keep(job, decision, lambda other: mutate(other, policy, view=view))
    if decision.patch and at(job, "metadata").get("deletionTimestamp") is None and has_valid_pods(job):
        dropped = without_defaults(job, kept_in=decision.document)
        stored = copy.deepcopy(decision.document)
        if isinstance(at(job).get("metadata"), dict) and isinstance(job["metadata"].get("annotations"), dict | None):
            for document in (dropped, stored):  # like `kubectl apply`
                annotations = at(document, "metadata", "annotations")
                document["metadata"]["annotations"] = {**annotations, LAST_APPLIED: json.dumps(job)}
        applied = mutate(dropped, policy, "UPDATE", view=view, stored=stored)
        assert without_list(applied.document) == without_list(decision.document), (
            "values that a repeated apply removes are restored"
        )
    return decision


def without_list(document: Any) -> Any:
    """The job without the list of injections and without kubectl's copy of the job. An update restores neither."""
    document = copy.deepcopy(document)
    annotations = document["metadata"].get("annotations") or {}
    for key in (INJECTED, LAST_APPLIED):
        annotations.pop(key, None)
    if not annotations:
        document["metadata"].pop("annotations", None)
    return document


@cache
def examples() -> Mapping[str, Example]:
    """The example of every injection, by the injection's id."""
    return {
        injection_id: getattr(import_module(module_of_tests(injection_id)), "EXAMPLE", Example())
        for injection_id in injections.REGISTRY
    }


def module_of_tests(injection_id: str) -> str:
    """The module with the tests of an injection."""
    return f"tests.unit.injections.test_{injection_id.replace('-', '_')}"


def policy_of(settings: Mapping[str, Any]) -> Policy:
    """A policy with these settings of injections."""
    document = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy", "injections": settings}
    return pipelines.load_policy(json.dumps(document))


def everything_on() -> Policy:
    """A policy in which every injection is enabled and has the settings of its example."""
    return policy_of({name: {**example.settings, "enabled": True} for name, example in examples().items()})


def only(injection_id: str, /, **settings: Any) -> Policy:
    """A policy with only this injection. Every note of the injection is a warning."""
    entry = injections.REGISTRY[injection_id]
    return Policy(TOLD, rules=(), injections=((entry, entry.settings.model_validate(settings)),))


def operations(injection_id: str, job: Any, /, **settings: Any) -> list[tuple[str, Any]]:
    """(JSON pointer, value) of each operation of this injection, in order."""
    decision = hold(job, only(injection_id, **settings))
    assert not decision.skipped
    return operations_of(decision)


def operations_of(decision: Decision) -> list[tuple[str, Any]]:
    """(JSON pointer, value) of each operation, except the last operation, which lists the injections."""
    return [(str(operation["path"]), operation["value"]) for operation in decision.patch[: len(decision.authors)]]


def inject(
    injection_id: str, job: Any, /, view: ClusterView = VIEW, **settings: Any
) -> tuple[dict[str, Any], list[str]]:
    """Run only this injection. Returns the added values by JSON pointer, and the notes without the injection's id."""
    decision = hold(job, only(injection_id, **settings), view=view)
    assert not decision.skipped
    return dict(operations_of(decision)), [note.removeprefix(f"{injection_id}: ") for note in decision.notes]


def mpijob(
    *,
    metadata: dict[str, Any] | None = None,
    run_policy: dict[str, Any] | None = None,
    launcher: dict[str, Any] | None = None,
    worker: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A job with two workers. `launcher` and `worker` are parts of the pod templates, `spec` has other fields."""
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
