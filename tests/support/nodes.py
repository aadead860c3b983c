"""A node as its kubelet reports it."""

from collections.abc import Iterable, Mapping
from typing import Any


def node(
    name: str,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    *,
    kubelet: str = "v1.35.4",
    runtime: str = "containerd://2.1.4",
    **amounts: str | int,
) -> dict[str, Any]:
    """A node with these `taints` (`key:Effect`) and `amounts`. It always has CPUs and memory."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"taints": [dict(zip(("key", "effect"), taint.split(":"), strict=True)) for taint in taints]},
        "status": {
            "allocatable": {"cpu": "96", "memory": "1Ti", **amounts},
            "nodeInfo": {"kubeletVersion": kubelet, "containerRuntimeVersion": runtime},
        },
    }
