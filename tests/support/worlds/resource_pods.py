"""Random pod templates, LimitRanges and RuntimeClasses with similar amounts of resources, and jobs from templates."""

import json
from random import Random
from typing import Any

from webhook.api import mpijob, quantity
from webhook.api.mpijob import MPIJob

Json = dict[str, Any]

CPU = ("1m", "100m", "250m", "0.5", "1", "1100m", "1500m", "2", "3", "4", "1e0", "0.3m", "1500001u", 2, 0)
MEMORY = ("64Mi", "100M", "1Gi", "1.5Gi", "2Gi", "3G", "4Gi", "1", "1500m", "0", 1073741824)
STORAGE = ("1Gi", "2Gi", "5G", "10Gi")
HUGE_PAGES = ("2Mi", "4Mi", "64Mi", "128Mi")
COUNT = (0, 1, "2", "4", 8)
GPU = "nvidia.com/gpu"
AMOUNTS: dict[str, tuple[Any, ...]] = {
    "cpu": CPU,
    "memory": MEMORY,
    "ephemeral-storage": STORAGE,
    "hugepages-2Mi": HUGE_PAGES,
    GPU: COUNT,
    "rdma/hca": COUNT,
}
NOT_OVERCOMMITTED = {"hugepages-2Mi", GPU, "rdma/hca"}
SHARES = {"cpu": 1.0, "memory": 0.8, "ephemeral-storage": 0.2, "hugepages-2Mi": 0.2, GPU: 0.3, "rdma/hca": 0.1}

RUNTIME_CLASSES: tuple[Json, ...] = tuple(
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "h",
        **({} if overhead is None else {"overhead": {"podFixed": overhead}}),
    }
    for name, overhead in (
        ("plain", None),
        ("empty", {}),
        ("kata", {"cpu": "250m", "memory": "120Mi"}),
        ("odd", {"cpu": "100100u", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi"}),
    )
)


def template(rng: Random) -> Json:
    """A random pod template, in most cases valid."""
    spec: Json = {"containers": [_container(rng, f"c{index}") for index in range(rng.choice((1, 1, 1, 2, 3)))]}
    if rng.random() < 0.35:
        spec["initContainers"] = [_init_container(rng, f"i{index}") for index in range(rng.choice((1, 2, 3)))]
    if rng.random() < 0.25:
        spec["resources"] = _pod_level(rng)
    if rng.random() < 0.25:
        spec["runtimeClassName"] = rng.choice(RUNTIME_CLASSES)["metadata"]["name"]
    if rng.random() < 0.2:
        spec["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim(rng)}}}]
    return {"spec": spec}


def claim(rng: Random) -> Json:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": rng.choice(STORAGE)}}}


def _container(rng: Random, name: str) -> Json:
    made: Json = {"name": name, "image": "x"}
    if rng.random() < 0.9:
        made["resources"] = _requirements(rng)
    return made


def _init_container(rng: Random, name: str) -> Json:
    sidecar = {"restartPolicy": "Always"} if rng.random() < 0.4 else {}
    return {**_container(rng, name), **sidecar}


def _requirements(rng: Random) -> Json:
    requests: Json = {}
    limits: Json = {}
    for name, share in SHARES.items():
        if rng.random() >= share:
            continue
        first, second = sorted(rng.choices(AMOUNTS[name], k=2), key=_size)
        if name in NOT_OVERCOMMITTED:
            limits[name] = second
            if rng.random() < 0.3:
                requests[name] = second
            continue
        written = rng.choice(("limit", "limit", "request", "both", "neither"))
        if written in {"limit", "both"}:
            limits[name] = second
        if written in {"request", "both"}:
            requests[name] = first
    return {
        **({"requests": requests} if requests or rng.random() < 0.1 else {}),
        **({"limits": limits} if limits or rng.random() < 0.1 else {}),
    }


def _pod_level(rng: Random) -> Json:
    """Resources of the pod, above the usual amounts of the containers, so that the pod is valid."""
    made: Json = {}
    for field, amounts in (
        ("requests", {"cpu": ("8", "9500m"), "memory": ("9Gi",), "hugepages-2Mi": ("256Mi",)}),
        ("limits", {"cpu": ("10", "16"), "memory": ("12Gi",), "hugepages-2Mi": ("256Mi",)}),
    ):
        values = {name: rng.choice(several) for name, several in amounts.items() if rng.random() < 0.5}
        if values or rng.random() < 0.2:
            made[field] = values
    if "hugepages-2Mi" in made.get("requests", ()):
        made.setdefault("limits", {})["hugepages-2Mi"] = "256Mi"
    return made


def limit_range(rng: Random, name: str) -> Json:
    """A random LimitRange, in most cases valid."""
    kinds = rng.sample(("Container", "Pod", "PersistentVolumeClaim"), k=rng.choice((1, 1, 2, 3)))
    limits = [_limit(rng, kind) for kind in kinds]
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": limits}}


def _limit(rng: Random, kind: str) -> Json:
    made: Json = {"type": kind}
    amounts = {"storage": STORAGE} if kind == "PersistentVolumeClaim" else AMOUNTS
    for name in (
        ["storage"] if kind == "PersistentVolumeClaim" else [n for n in SHARES if rng.random() < 0.1 + SHARES[n] / 3]
    ):
        low, middle, high, top = sorted(rng.choices(amounts[name], k=4), key=_size)
        if kind == "Pod" and rng.random() < 0.7:
            top = {"cpu": "8", "memory": "8Gi"}.get(name, top)
        fields = {"min": low, "defaultRequest": middle, "default": high, "max": top}
        if name in NOT_OVERCOMMITTED:
            fields["defaultRequest"] = high
        for field, value in fields.items():
            applies = field in {"min", "max"} or kind == "Container"
            if applies and (rng.random() < (0.45 if name not in NOT_OVERCOMMITTED else 0.25) or name == "storage"):
                made.setdefault(field, {})[name] = value
        if rng.random() < 0.3 and kind != "PersistentVolumeClaim":
            made.setdefault("maxLimitRequestRatio", {})[name] = rng.choice(("1", "1.1", "1500m", "2", 3, "10"))
    return made


def _size(value: Any) -> int:
    return quantity.parse(value)


def job(launcher: Json, worker: Json) -> Json:
    return {
        "apiVersion": mpijob.API_VERSION,
        "kind": "MPIJob",
        "metadata": {"name": "train"},
        "spec": {
            "mpiReplicaSpecs": {"Launcher": {"template": launcher}, "Worker": {"replicas": 3, "template": worker}}
        },
    }


def decoded(made: Json) -> MPIJob:
    """The job with defaults, as rules see it."""
    return mpijob.apply_operator_defaults(mpijob.decode(json.dumps(made).encode()))
