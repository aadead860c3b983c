"""LimitRanges as Kubernetes objects, and amounts in Kubernetes' notation."""

from typing import Any

from webhook.api import quantity
from webhook.api.pod_resources import Amounts

Json = dict[str, Any]


def limit_range(name: str, *limits: Json, namespace: str = "team-a") -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [*limits]}}


def shown(amounts: Amounts) -> dict[str, str]:
    return {name: quantity.format(amount) for name, amount in amounts.items()}
