"""Reviews for the comparison: realistic jobs with random changes, random policies and clusters.

A case is a plain JSON object, so that an older revision of the project can answer it. Its keys are `hook`, `job`,
`old` (null on CREATE), `user`, `policy` and `cluster`. The last two are indices into the lists that `record` gets.
"""

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from tests.bench.body import user_job, with_crd_defaults
from tests.bench.cluster import Size, objects
from tests.support.jobs import GOOD, changed
from tests.support.paths import EXAMPLES, MANIFESTS
from tests.support.strategies import COMPLETE, parent_of, paths
from webhook.api.yaml import load_all
from webhook.cluster.resources import watched_resources
from webhook.cluster.snapshot import API_VERSION, KIND
from webhook.injections import REGISTRY as INJECTIONS
from webhook.rules import REGISTRY as RULES

SEED = 20260301
POLICIES = 60
HEAD = {"apiVersion": "policy.training.openshift.io/v1", "kind": "MPIJobPolicy"}
# Invalid values that users and attackers write.
ODD: tuple[Any, ...] = (
    None, "", "x", "0", "1", "1e30", "-1", "500m", "1Gi", "2", 0, 1, 2, 8, 16, 101, -1, 0.5, True, False, [], {}, ["x"],
    {"x": "y"}, [None], [{}], "Always", "None", "Running", "a" * 70, "é\n\x1b[31m", "10.0.0.1", "/root/.ssh",
    "/etc/mpi",
)  # fmt: skip
# Changes that cause violations, with paths as in `tests.support.jobs.changed`.
TWEAKS: tuple[tuple[str, Any], ...] = (
    ("metadata.labels", {"kueue.x-k8s.io/queue-name": "training"}),
    ("metadata.labels", {"kueue.x-k8s.io/queue-name": "missing", "kueue.x-k8s.io/priority-class": "x"}),
    ("metadata.labels", {"compliance.openshift.io/data-classification": "PHI"}),
    ("metadata.annotations", {"training.openshift.io/timeout": "400d", "training.openshift.io/exempt": "gpus,slots"}),
    ("metadata.name", "x" * 54),
    ("metadata.name", "job-0"),
    ("metadata.name", "job-1-launcher"),
    ("spec.mpiImplementation", "MPICH"),
    ("spec.mpiImplementation", "Intel"),
    ("spec.slotsPerWorker", 12),
    ("spec.slotsPerWorker", 4),
    ("spec.runPolicy", {"ttlSecondsAfterFinished": 0, "cleanPodPolicy": "None"}),
    ("spec.runPolicy", {"schedulingPolicy": {"minAvailable": 99, "queue": "q", "priorityClass": "none"}}),
    ("spec.runPolicy", {"suspend": True, "managedBy": "kueue.x-k8s.io/multikueue"}),
    ("spec.runPolicy", {"activeDeadlineSeconds": 3600}),
    ("Worker.replicas", 1),
    ("Worker.replicas", 40),
    ("Worker.template.spec.hostNetwork", True),
    ("Worker.template.spec.nodeSelector", {"nvidia.com/gpu.product": "nothing"}),
    ("Worker.template.spec.priorityClassName", "missing"),
    ("Worker.template.spec.containers.0.resources", {"limits": {"nvidia.com/gpu": "64", "cpu": "400"}}),
    ("Worker.template.spec.containers.0.resources", {"limits": {"nvidia.com/gpu": "1", "memory": "900Ti"}}),
    ("Worker.template.spec.containers.0.securityContext", {"privileged": True}),
    ("Worker.template.spec.containers.0.image", "Registry.example.com/UPPER"),
    ("Launcher.template.spec.containers.0.command", ["mpirun", "-np", "3", "train"]),
    ("Launcher.template.spec.serviceAccountName", "nobody"),
)
NAMES = ("nvidia.com/gpu", "amd.com/gpu", "cpu", "memory", "replicas", "image", "command", "env", "resources",
         "securityContext", "hostNetwork", "runAsUser", "kueue.x-k8s.io/queue-name", "suspend",
         "managedBy")  # fmt: skip
# A policy with settings that the random generator never produces.
WRITTEN = HEAD | {
    "rules": {
        "mpi-implementation": {"allowed": ["Intel"]},
        "clean-pod-policy": {"allowed": ["All"]},
        "compliance": {"action": "deny", "nodeLabels": {"compliance": "hipaa"}, "storageClasses": ["encrypted"]},
    },
    "injections": {
        "tolerations": {
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}, {"key": "team", "value": "ml"}]
        },
        "node-selector": {"labels": {"pool": "training"}},
    },
}
LEVELS: tuple[dict[str, str], ...] = (
    {},
    {"pod-security.kubernetes.io/enforce": "restricted"},
    {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "restricted"},
    {"pod-security.kubernetes.io/audit": "restricted", "tier": "base"},
)


def cases(count: int, *, policies: int, clusters: int) -> Iterator[dict[str, Any]]:
    """`count` cases, the same in every run."""
    rng = random.Random(SEED)
    base = list(_base_jobs())
    for number in range(count):
        job = copy.deepcopy(base[number % len(base)])
        job.setdefault("metadata", {})["namespace"] = f"team-{rng.randrange(4):04}"
        old = None
        for path, value in rng.sample(TWEAKS, k=rng.choice((0, 1, 1, 2, 4))):
            job = _tweaked(job, path, value)
        for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
            job = _changed(rng, job)
        if rng.random() < 0.4:
            old = copy.deepcopy(job)
            for _ in range(rng.choice((0, 1, 1, 2))):
                job = _changed(rng, job)
            job = _tweaked(job, *rng.choice(TWEAKS))
        yield {
            "hook": rng.choice(("mutate", "validate", "validate")),
            "job": job,
            "old": old,
            "policy": rng.randrange(policies),
            "cluster": rng.randrange(clusters),
            "user": rng.choice(("alice", "system:serviceaccount:kueue-system:kueue-controller-manager")),
        }


def policies() -> list[str]:
    """Policy documents as JSON: the built-in policy, every ready-made policy, and policies with random settings."""
    rng = random.Random(SEED)
    ready = [
        document["data"]["policy.yaml"]
        for path in sorted((MANIFESTS / "policies").glob("*.yaml"))
        for document in load_all(path.read_text())
        if document and document.get("kind") == "ConfigMap"
    ]
    return ["", json.dumps(WRITTEN), *ready, *(json.dumps(_drawn_policy(rng)) for _ in range(POLICIES))]


def clusters() -> list[list[dict[str, Any]]]:
    """A cluster without objects, and a cluster with objects of every kind in four namespaces."""
    return [[], list(_cluster())]


def _base_jobs() -> Iterator[dict[str, Any]]:
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        yield from (job for job in load_all(path.read_text()) if job and job.get("kind") == "MPIJob")
    yield copy.deepcopy(GOOD)
    yield copy.deepcopy(COMPLETE)
    for number in range(0, 200, 5):
        yield with_crd_defaults(user_job(number))


def _tweaked(job: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    with suppress(KeyError, IndexError, TypeError, ValueError, AttributeError):  # a job without this field
        return changed({path: value}, job)
    return job


def _changed(rng: random.Random, job: Any) -> Any:
    """A copy with a changed, removed or added value at a random place."""
    job = copy.deepcopy(job)
    path = rng.choice(list(paths(job)))
    parent, last = parent_of(job, path), path[-1]
    roll = rng.random()
    if roll < 0.2:
        del parent[last]
    elif roll < 0.4 and isinstance(parent[last], list) and parent[last]:
        parent[last] = parent[last] * 2
    elif roll < 0.6 and isinstance(parent[last], dict):
        parent[last][rng.choice(NAMES)] = rng.choice(ODD)
    else:
        alike = [value for value in ODD if type(value) is type(parent[last])]
        parent[last] = rng.choice(alike if alike and rng.random() < 0.8 else ODD)
    return job


def _drawn_policy(rng: random.Random) -> dict[str, Any]:
    return HEAD | {
        "mode": rng.choice(("enforce", "enforce", "warn", "audit")),
        "rules": {rule.id: _drawn_settings(rng, rule.settings) for rule in RULES.values() if rng.random() < 0.7},
        "injections": {entry.id: _drawn_settings(rng, entry.settings) for entry in INJECTIONS.values()},
    }


def _drawn_settings(rng: random.Random, settings: Any) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    for name, field in settings.model_json_schema()["properties"].items():
        if rng.random() < 0.5:
            continue
        for value in rng.sample((*field.get("enum", ()), *_of_type(field), *ODD), k=4):
            try:
                settings.model_validate(drawn | {name: value})
            except (ValidationError, ValueError):
                continue
            drawn[name] = value
            break
    return drawn


def _of_type(field: dict[str, Any]) -> tuple[Any, ...]:
    kinds = {schema.get("type") for schema in (field, *field.get("anyOf", ()))}
    values: dict[str, tuple[Any, ...]] = {
        "boolean": (True, False),
        "integer": (0, 1, 2, 4, 8),
        "array": (["nvidia.com/gpu"], ["registry.example.com"], ["Running"]),
        "string": ("deny", "warn", "audit", "restricted", "24h"),
        "object": ({"team": "ml"},),
    }
    return tuple(value for kind in kinds if kind for value in values.get(kind, ()))


def _cluster() -> Iterator[dict[str, Any]]:
    made = objects(Size(jobs=16, namespaces=4))
    kinds = {resource.name: resource for resource in watched_resources()}
    yield {"apiVersion": API_VERSION, "kind": KIND, "known": {name: {} for name in made}, "unknown": {}}
    for name, (count, make) in made.items():
        resource = kinds[name]
        for number in range(count):
            document = {"apiVersion": resource.api_versions[0], "kind": resource.kind, **json.loads(make(number))}
            if name == "namespaces":
                document["metadata"]["labels"] |= LEVELS[number]
            if name == "resourcequotas" and number % 2:
                hard = {"requests.nvidia.com/gpu": "8", "requests.cpu": "64", "limits.memory": "512Gi", "pods": "6"}
                document |= {"spec": {"hard": hard}, "status": {"hard": hard, "used": dict.fromkeys(hard, "2")}}
            yield document
