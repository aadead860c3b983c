"""Simulated nodes: Node objects with GPUs, spread over racks. KWOK keeps the nodes Ready."""

from collections.abc import Mapping
from typing import Any

import yaml

KEEP_RUNNING = "controlplane.test/keep-running"
"""An annotation in a launcher's pod template. With any value, the launcher does not complete: the job stays Running."""

BY_HAND = "controlplane.test/by-hand"
"""An annotation in a pod template. With any value, KWOK ignores the pods, and a test writes their status."""

GPU = "NVIDIA-H100-80GB-HBM3"


def gpu_nodes(
    count: int,
    *,
    gpus: int = 8,
    racks: int = 2,
    zone: str = "zone-a",
    product: str = GPU,
    cpu: int = 96,
    memory: str = "1Ti",
    prefix: str = "gpu",
    devices: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """`count` Node objects `<prefix>-0` ... with `gpus` GPUs (0 for a CPU node) and `devices`, spread over `racks`.

    The labels are the GPU operator's (https://github.com/NVIDIA/k8s-device-plugin, gpu-feature-discovery), Kubernetes'
    zone label, and the usual rack label for topology-aware scheduling.
    """
    resources = {"cpu": str(cpu), "memory": memory, "pods": "110", **(devices or {})}
    if gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    gpu_labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": product} if gpus else {}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"{prefix}-{index}",
                "labels": {
                    "kubernetes.io/hostname": f"{prefix}-{index}",
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/zone": zone,
                    "topology.kubernetes.io/rack": f"rack-{index % racks}",
                    **gpu_labels,
                },
            },
            "status": {"capacity": resources, "allocatable": resources},
        }
        for index in range(count)
    ]


def stages(upstream: str) -> str:
    """KWOK's stages, changed for the annotations above: KWOK ignores pods with BY_HAND, and does not complete pods with
    KEEP_RUNNING. Other pods run at once, and pods of a Job complete at once.
    """
    documents = list(yaml.safe_load_all(upstream))
    by_name = {stage["metadata"]["name"]: stage for stage in documents}
    for stage, annotation in (("pod-ready", BY_HAND), ("pod-complete", BY_HAND), ("pod-complete", KEEP_RUNNING)):
        unless = {"key": f'.metadata.annotations["{annotation}"]', "operator": "DoesNotExist"}
        by_name[stage]["spec"]["selector"]["matchExpressions"].append(unless)
    return yaml.safe_dump_all(documents)
