"""Functions that build Volcano's Queues, and namespaces that name a Queue."""

from collections.abc import Mapping
from typing import Any

from webhook.api.mpijob import VOLCANO_QUEUE

Json = dict[str, Any]
Amounts = Mapping[str, str | int]


def queue(
    name: str,
    capability: Amounts | None = None,
    *,
    state: str = "Open",
    parent: str = "",
    allocated: Amounts | None = None,
) -> Json:
    spec: Json = {"weight": 1, "reclaimable": True}
    spec |= {"capability": dict(capability)} if capability else {}
    spec |= {"parent": parent} if parent else {}
    status = ({"state": state} if state else {}) | {"allocated": dict(allocated or {})}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }


def namespace(name: str, queue: str | None = None) -> Json:
    annotations = {} if queue is None else {VOLCANO_QUEUE: queue}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}
