"""The service predicts whether a pod fits on an empty node. The test compares this with the real kube-scheduler.

Generated pods are created one after the other in a cluster with generated nodes. The scheduler binds the pod, or
reports that the pod fits nowhere. Then the test deletes the pod. MPIJOB_SCHEDULER_PODS sets how many pods are tried.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from tests.controlplane.cluster import Cluster
from tests.support.api_client import Client, client
from tests.support.rare import rare
from tests.support.rule_checks import violations
from webhook.api import quantity
from webhook.api.pod import PodSpec, PodTemplate, Toleration
from webhook.api.pod_resources import of_template, requests
from webhook.api.taints import Taint
from webhook.cluster.resources.nodes import NodeShape
from webhook.cluster.snapshot import Snapshot
from webhook.predict.scheduler import Room, demands

pytestmark = [rare, pytest.mark.cluster, pytest.mark.timeout(300)]
APISERVER_FLAGS = ["--disable-admission-plugins=TaintNodesByCondition"]

PODS = int(os.environ.get("MPIJOB_SCHEDULER_PODS", "150"))
NODES = 12
GPU, RDMA, HUGE = "nvidia.com/gpu", "rdma/hca", "hugepages-2Mi"
PRODUCT, GENERATION, HOSTNAME = "nvidia.com/gpu.product", "example.com/generation", "kubernetes.io/hostname"
OVERHEAD = {"cpu": "1", "memory": "1Gi"}
ADDED = [{"key": "sandbox", "operator": "Exists"}]
RUNTIME = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "sandboxed"},
    "handler": "sandboxed",
    "overhead": {"podFixed": OVERHEAD},
    "scheduling": {"tolerations": ADDED},
}
PASSING = "node.kubernetes.io/disk-pressure"
TINY = {"containers": [{"name": "a", "image": "x"}], "tolerations": [{"operator": "Exists"}]}


def node(rng: Random, index: int) -> dict[str, Any]:
    """A random node, with or without GPUs and taints. Its memory is round, or an odd number as kubelets report it."""
    name = f"node-{index}"
    gpus = rng.choice((0, 2, 4, 8))
    labels = {HOSTNAME: name, "zone": rng.choice("ab"), GENERATION: rng.choice("345")}
    allocatable = {
        "cpu": rng.choice(("8", "31850m", "96")),
        "memory": rng.choice(("64Gi", "527953052Ki", "1055794380Ki")),
        "ephemeral-storage": rng.choice(("100Gi", "885012522772")),
        "pods": "110",
    }
    if gpus:
        labels |= {PRODUCT: rng.choice(("A100", "H100")), "nvidia.com/gpu.present": "true"}
        allocatable |= {GPU: str(gpus)} | ({RDMA: "1"} if rng.random() < 0.5 else {})
    if rng.random() < 0.3:
        allocatable[HUGE] = "1Gi"
    taints = [
        {"key": key, "value": value, "effect": rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))}
        for key, value, share in (
            (GPU, "", 0.3), ("team", "a", 0.2), ("team", "b", 0.1), ("sandbox", "", 0.2), (PASSING, "", 0.1)
        )
        if rng.random() < share
    ]  # fmt: skip
    distinct = {(taint["key"], taint["effect"]): taint for taint in taints}  # each key and effect once
    spec = {"taints": [*distinct.values()], "unschedulable": rng.random() < 0.1}
    metadata = {"name": name, "labels": labels}
    status = {"capacity": allocatable, "allocatable": allocatable}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def pod_spec(rng: Random) -> dict[str, Any]:
    """A pod that requests resources that only some of the nodes have."""
    spec: dict[str, Any] = {"containers": [container(rng, "a", gpus=9)], "terminationGracePeriodSeconds": 0}
    if rng.random() < 0.2:
        spec["initContainers"] = [container(rng, "i", gpus=4)]
        if rng.random() < 0.5:
            spec["initContainers"][0]["restartPolicy"] = "Always"
    if rng.random() < 0.15:
        spec["resources"] = {"requests": {"cpu": "200", "memory": "1Gi"} if rng.random() < 0.3 else {"memory": "8Gi"}}
        for made in (*spec["containers"], *spec.get("initContainers", ())):
            made["resources"] = {"limits": {key: v for key, v in made["resources"]["limits"].items() if "/" in key}}
    if rng.random() < 0.15:
        spec["runtimeClassName"] = "sandboxed"
    if rng.random() < 0.3:
        labels = (("zone", "a"), ("zone", "c"), (PRODUCT, "H100"), (PRODUCT, "V100"), (HOSTNAME, "node-0"))
        spec["nodeSelector"] = dict(rng.sample(labels, rng.randint(1, 2)))
    if rng.random() < 0.4:
        terms = {"nodeSelectorTerms": node_terms(rng)}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    spec["tolerations"] = [toleration(rng) for _ in range(rng.randint(0, 3))]
    return spec


def container(rng: Random, name: str, *, gpus: int) -> dict[str, Any]:
    amounts = {"cpu": rng.choice(("500m", "7", "31850m", "32", "96")), "memory": rng.choice(AMOUNTS)}
    kept = {key: value for key, value in amounts.items() if rng.random() < 0.4}
    if rng.random() < 0.3:
        kept[GPU] = str(rng.randint(0, gpus))
    if rng.random() < 0.05:
        kept[RDMA] = "1"
    if rng.random() < 0.05:
        kept |= {HUGE: rng.choice(("2Mi", "1Gi", "2Gi")), "memory": "1Gi"}
    if rng.random() < 0.05:
        kept["ephemeral-storage"] = rng.choice(("100Gi", "200Gi", "2Ti"))
    return {"name": name, "image": "x", "resources": {"limits": kept}}


AMOUNTS = ("1Gi", "64Gi", "65Gi", "527953052Ki", "527953053Ki", "1055794380Ki", "1007Gi", "1.5e9", "100m")


def node_terms(rng: Random) -> list[dict[str, Any]]:
    """One or two node selector terms, each with up to two expressions, or one term that also names a node."""
    some = (
        {"key": PRODUCT, "operator": "In", "values": ["A100", "H100"]},
        {"key": PRODUCT, "operator": "NotIn", "values": ["A100"]},
        {"key": PRODUCT, "operator": "Exists"},
        {"key": PRODUCT, "operator": "DoesNotExist"},
        {"key": GENERATION, "operator": "Gt", "values": ["3"]},
        {"key": GENERATION, "operator": "Lt", "values": [rng.choice("34")]},
        {"key": "nowhere", "operator": "Gt", "values": ["0"]},
        {"key": HOSTNAME, "operator": "NotIn", "values": ["node-1"]},
        {"key": "zone", "operator": "In", "values": [rng.choice("abc")]},
    )
    terms: list[dict[str, Any]] = [{"matchExpressions": rng.sample(some, rng.randint(0, 2))} for _ in range(2)]
    if rng.random() < 0.1:
        name = rng.choice(("node-2", "gone"))
        return [{**terms[0], "matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
    return terms[: rng.randint(1, 2)]


def toleration(rng: Random) -> dict[str, Any]:
    effect = rng.choice(({}, {}, {"effect": "NoSchedule"}, {"effect": "NoExecute"}, {"effect": "PreferNoSchedule"}))
    kind = rng.choice(
        (
            {"key": GPU, "operator": "Exists"},
            {"key": GPU},
            {"key": "team", "operator": "Equal", "value": "a"},
            {"key": "team", "value": "b"},
            {"key": "team", "operator": "Exists"},
            {"key": "sandbox", "operator": "Exists"},
            {"operator": "Exists"},
        )
    )
    return {**kind, **effect}


class Pods:
    """Creates pods in a namespace, one at a time."""

    def __init__(self, api: Client, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    async def bound(self, spec: dict[str, Any], *, expected: bool) -> bool:
        """Whether the scheduler binds the pod.

        With `expected`, the scheduler gets more time: it may not have seen the deletion of the last pod yet.
        """
        status, reply, _ = await self._api.send("POST", self._path, {"metadata": {"name": "p"}, "spec": spec})
        assert status == 201, reply
        outcome = await self._outcome(patience=0.5 if expected else 0.0)
        status, reply, _ = await self._api.send("DELETE", f"{self._path}/p", {"gracePeriodSeconds": 0})
        assert status == 200, reply
        return outcome

    async def _outcome(self, *, patience: float) -> bool:
        """Polls until the pod is bound, or until it is unschedulable and `patience` seconds have passed."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while True:
            _, pod, _ = await self._api.send("GET", f"{self._path}/p", None)
            if pod["spec"].get("nodeName"):
                return True
            reasons = {condition.get("reason") for condition in pod["status"].get("conditions", ())}
            if "Unschedulable" in reasons and loop.time() >= end:
                return False
            await asyncio.sleep(0.005)


def exactly(spec: dict[str, Any], nodes: Sequence[dict[str, Any]]) -> bool:
    """Whether the pod fits on one of the nodes now, without rounding and simplification."""
    template = PodTemplate(spec=msgspec.convert(spec, PodSpec))
    tolerations = (template.spec and template.spec.tolerations) or []
    resources = of_template(template)
    if "runtimeClassName" in spec:
        resources = resources.with_overhead({name: quantity.parse(value) for name, value in OVERHEAD.items()})
        tolerations = tolerations + msgspec.convert(ADDED, list[Toleration])
    requested = demands(template, requests(resources), tolerations)
    return any(
        named(spec, node)
        and all(
            shape.allocatable.get(demand.resource, 0) >= demand.amount
            if isinstance(demand, Room)
            else demand.met(shape)
            for demand in requested
        )
        for node in nodes
        for shape in (exact_shape(node),)
    )


def named(spec: dict[str, Any], node: dict[str, Any]) -> bool:
    """Whether the pod's node affinity allows this node's name."""
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = required["nodeSelectorTerms"] if required else ()
    return all(node["metadata"]["name"] in field["values"] for term in terms for field in term.get("matchFields", ()))


def exact_shape(node: dict[str, Any]) -> NodeShape:
    taints = tuple(Taint(**taint) for taint in node["spec"].get("taints", ()))
    amounts = {name: quantity.parse(value) for name, value in node["status"]["allocatable"].items()}
    if node["spec"].get("unschedulable"):
        taints += (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),)
    return NodeShape(node["metadata"]["labels"], frozenset(), taints, amounts)


def differences(spec: dict[str, Any], nodes: Sequence[dict[str, Any]]) -> set[str]:
    """The reasons why the rule may predict a fit although no node fits now: simplifications and rounding."""
    text = json.dumps(spec)
    reasons = {
        "cordoned, or in trouble": any(
            node["spec"].get("unschedulable") or PASSING in json.dumps(node["spec"]) for node in nodes
        ),
        "the node's own name": HOSTNAME in text or "matchFields" in text,
        "memory within the rounding": any(amount in text for amount in ("527953053Ki", "1007Gi", "65Gi")),
        "a RuntimeClass's tolerations": "runtimeClassName" in spec,
    }
    return {reason for reason, holds in reasons.items() if holds}


async def test_a_pod_that_fits_nowhere_is_never_bound(cluster: Cluster) -> None:
    """A pod that the rule accepts is bound, apart from the intended differences."""
    # There are no kubelets and no node controller, so nodes never change, and pods never run.
    cluster.start_scheduler()
    rng = Random(5)
    nodes = [node(rng, index) for index in range(NODES)]
    cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": [RUNTIME, *nodes]})
    view = Snapshot([*nodes, RUNTIME])
    namespace = cluster.create_namespace()
    counts: Counter[str] = Counter()
    async with client(cluster) as api:
        pods = Pods(api, namespace)
        for _ in range(PODS):
            spec = pod_spec(rng)
            job = {"Worker.replicas": 1, "Worker.template": {"spec": spec}, "Launcher.template": {"spec": TINY}}
            ours = not violations("accelerator-available", job, view=view)
            exact = exactly(spec, nodes)
            theirs = await pods.bound(spec, expected=exact)
            assert theirs == exact, json.dumps(spec)
            assert ours or not theirs, json.dumps(spec)
            if ours == theirs:
                counts["bound" if theirs else "unschedulable"] += 1
            else:
                reasons = differences(spec, nodes)
                assert reasons, json.dumps(spec)
                counts["differs"] += 1
    assert counts["bound"] > PODS / 5
    assert counts["unschedulable"] > PODS / 5
    assert counts["differs"] < PODS / 5
