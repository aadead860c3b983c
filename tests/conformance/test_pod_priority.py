"""Compares the rule `priority` with the API server's admission, for pods with a priority and a PriorityClass."""

from itertools import product
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.api_client import DRY_RUN, Client, client
from tests.support.rule_checks import violations
from webhook.cluster.snapshot import Snapshot

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

NAMESPACE = "priorities"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PRIORITIES = (None, 0, 5, 10, 2_000_000_000)
POLICIES = (None, "PreemptLowerPriority", "Never")
NAMES = (None, "high", "meek", "system-cluster-critical", "High Prio")
Json = dict[str, Any]


def of_class(name: str, value: int, **more: Any) -> Json:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**head, "metadata": {"name": name}, "value": value, **more}


HIGH, MEEK = of_class("high", 10), of_class("meek", 5, preemptionPolicy="Never")
USUAL = of_class("usual", 5, globalDefault=True)


async def differences(api: Client, classes: list[Json]) -> list[str]:
    """Pods that only the API server or only the rule rejects."""
    view, different = Snapshot(classes), []
    for priority, policy, name in product(PRIORITIES, POLICIES, NAMES):
        given = {"priority": priority, "preemptionPolicy": policy, "priorityClassName": name}
        spec = {"containers": [{"name": "a", "image": "a:1"}], **given}
        status, reply, _ = await api.send("POST", PODS, {"metadata": {"name": "p"}, "spec": spec}, **DRY_RUN)
        ours = violations(
            "priority", {f"Worker.template.spec.{field}": value for field, value in given.items()}, view=view
        )
        if (status == 201) == any(not violation.advisory for violation in ours):
            different.append(f"{given}: {reply.get('message')} {ours}")
    return different


async def test_rule_and_api_server_reject_the_same_pods(cluster: Cluster) -> None:
    """The cluster has no default PriorityClass for the first comparison, and has one for the second."""
    async with client(cluster) as api:
        await api.make_namespace(NAMESPACE)
        for priority_class in (HIGH, MEEK):
            await api.make(CLASSES, priority_class)
        assert await differences(api, [HIGH, MEEK]) == []
        await api.make(CLASSES, USUAL)
        assert await differences(api, [HIGH, MEEK, USUAL]) == []
