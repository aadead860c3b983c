"""Random ResourceQuotas, many of them nearly used up, and pod templates for all scopes."""

from random import Random
from typing import Any

from tests.support.worlds import resource_pods

Json = dict[str, Any]

COUNTED = {
    "cpu": 12,
    "requests.cpu": 12,
    "limits.cpu": 16,
    "memory": 16 * 2**30,
    "requests.memory": 16 * 2**30,
    "limits.memory": 24 * 2**30,
    "pods": 4,
}
"""Resources of quotas for pods. Each value is a large amount for a single pod."""
UNSCOPED = {
    "ephemeral-storage": 16 * 10**9,
    "requests.ephemeral-storage": 16 * 10**9,
    "limits.ephemeral-storage": 16 * 10**9,
    "hugepages-2Mi": 300 * 2**20,
    "requests.hugepages-2Mi": 300 * 2**20,
    "services": 3,
    "configmaps": 3,
    "secrets": 3,
    "persistentvolumeclaims": 3,
    "requests.storage": 12 * 10**9,
}
ANYWHERE = {
    "requests.nvidia.com/gpu": 10,
    "requests.rdma/hca": 10,
    "nvidia.com/gpu": 10,  # quotas ignore this resource
    "count/pods": 4,
    "count/services": 3,
    "count/configmaps": 3,
    "count/secrets": 3,
    "count/jobs.batch": 3,
    "count/mpijobs.kubeflow.org": 3,
    "count/persistentvolumeclaims": 3,
    "gold.storageclass.storage.k8s.io/persistentvolumeclaims": 3,
    "gold.storageclass.storage.k8s.io/requests.storage": 12 * 10**9,
}
POD_SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
PRIORITY_CLASSES = ("high", "low")
DEFAULT_PRIORITY = "usual"
STORAGE_CLASSES = (None, "", "gold", "silver")
ATTRIBUTES_CLASSES = (None, "fast", "slow")


def resource_quota(rng: Random, namespace: str, name: str) -> Json:
    """A quota with a status. Sometimes the limits in the status differ from the spec, or the usage lacks a resource."""
    scopes, selector, resources = _scopes(rng)
    chosen = rng.sample([*resources], k=min(len(resources), rng.choice((1, 2, 4, 8))))
    most = {**COUNTED, **UNSCOPED, **ANYWHERE}
    hard = {name: most[name] for name in chosen}
    counted = hard if rng.random() < 0.8 else {name: amount * 2 for name, amount in hard.items()}
    used = {name: _used(rng, name, amount) for name, amount in counted.items() if rng.random() < 0.99}
    written = {name: str(amount) for name, amount in hard.items()}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "hard": written,
            **({"scopes": scopes} if scopes else {}),
            **({"scopeSelector": {"matchExpressions": selector}} if selector else {}),
        },
        "status": {"hard": {name: str(amount) for name, amount in counted.items()}, "used": used},
    }


def _used(rng: Random, name: str, hard: int) -> str:
    share = rng.choice((0, 0, 0.25, 0.5, 0.75, 1, 1.2))
    return f"{int(hard * share * 1000)}m" if name.endswith("cpu") else str(int(hard * share))


def _scopes(rng: Random) -> tuple[list[str], list[Json], list[str]]:
    """Random `scopes`, a scope selector, and the resources that a quota with these scopes may limit."""
    kind = rng.choice(("none", "none", "pods", "pods", "pods", "claims"))
    if kind == "none":
        return [], [], [*COUNTED, *UNSCOPED, *ANYWHERE]
    if kind == "claims":
        listed = rng.random() < 0.3
        selector = [] if listed else [_expression(rng, "VolumeAttributesClass", ("fast", "slow", "none"))]
        resources = ["persistentvolumeclaims", "requests.storage", *ANYWHERE]
        return (["VolumeAttributesClass"] if listed else []), selector, resources
    chosen = rng.sample(POD_SCOPES, k=rng.choice((0, 1, 1, 2)))
    if {"Terminating", "NotTerminating"} <= {*chosen} or {"BestEffort", "NotBestEffort"} <= {*chosen}:
        chosen = chosen[:1]
    scopes = [scope for scope in chosen if rng.random() < 0.5]
    selector = [{"scopeName": scope, "operator": "Exists"} for scope in chosen if scope not in scopes]
    if not chosen or rng.random() < 0.3:
        selector.append(_expression(rng, "PriorityClass", (*PRIORITY_CLASSES, DEFAULT_PRIORITY)))
    return scopes, selector, ["pods", *ANYWHERE] if "BestEffort" in chosen else [*COUNTED, *ANYWHERE]


def _expression(rng: Random, scope: str, values: tuple[str, ...]) -> Json:
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    listed = {"values": rng.sample(values, k=rng.choice((1, 2)))} if operator in {"In", "NotIn"} else {}
    return {"scopeName": scope, "operator": operator, **listed}


def template(rng: Random) -> Json:
    """A random pod template, in most cases valid."""
    made = resource_pods.template(rng)
    spec = made["spec"]
    if rng.random() < 0.2:
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            container.pop("resources", None)
        spec.pop("resources", None)
    if rng.random() < 0.05:
        spec["resources"] = {}
    if rng.random() < 0.4:
        spec["priorityClassName"] = rng.choice(PRIORITY_CLASSES)
    if rng.random() < 0.4:
        spec["activeDeadlineSeconds"] = rng.choice((1, 3600))
    if rng.random() < 0.4:
        spec["affinity"] = {rng.choice(("podAffinity", "podAntiAffinity")): _pod_affinity(rng)}
    if rng.random() < 0.3:
        spec["volumes"] = [_scratch(rng, f"v{index}") for index in range(rng.choice((1, 2)))]
    return made


def _pod_affinity(rng: Random) -> Json:
    elsewhere = rng.choice(({}, {"namespaces": []}, {"namespaces": ["other"]}, {"namespaceSelector": {}}))
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, **elsewhere}
    if rng.random() < 0.5:
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}


def _scratch(rng: Random, name: str) -> Json:
    spec = resource_pods.claim(rng)
    for field, values in (("storageClassName", STORAGE_CLASSES), ("volumeAttributesClassName", ATTRIBUTES_CLASSES)):
        value = rng.choice(values)
        if value is not None:
            spec[field] = value
    if rng.random() < 0.3:
        spec["resources"]["requests"]["storage"] = "1500m"
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
