"""Simulated nodes: plain Node objects that KWOK keeps Ready, with GPUs, in racks."""

from collections.abc import Mapping
from typing import Any

import yaml

KEEP_RUNNING = "controlplane.test/keep-running"
"""Annotation (any value) of a launcher's pod template: the launcher does not complete, so the job stays Running."""

BY_HAND = "controlplane.test/by-hand"
"""Annotation (any value) of a pod template: KWOK leaves its pods alone, and a test plays their kubelet."""

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
    pods: int = 110,
    prefix: str = "gpu",
    devices: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """`count` Node objects `<prefix>-0` ... with `gpus` GPUs (0: a CPU node) and `devices`, evenly in `racks` racks.

    Labels are those of the GPU operator (https://github.com/NVIDIA/k8s-device-plugin, gpu-feature-discovery) and the
    zone label of Kubernetes; the rack label is the one that topology-aware scheduling is commonly set up with.
    """
    resources = {"cpu": str(cpu), "memory": memory, "pods": str(pods), **(devices or {})}
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
    """KWOK's own stages of a pod, which start every pod and complete those of a Job at once, with two exceptions."""
    documents = list(yaml.safe_load_all(upstream))
    by_name = {stage["metadata"]["name"]: stage for stage in documents}
    for stage, annotation in (("pod-ready", BY_HAND), ("pod-complete", BY_HAND), ("pod-complete", KEEP_RUNNING)):
        unless = {"key": f'.metadata.annotations["{annotation}"]', "operator": "DoesNotExist"}
        by_name[stage]["spec"]["selector"]["matchExpressions"].append(unless)
    return yaml.safe_dump_all(documents)
