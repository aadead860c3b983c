"""The resource names of accelerators, and the number of accelerators that a pod requests.

https://github.com/kubernetes/component-helpers/blob/v0.35.4/resource/helpers.go (`PodRequests`)
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from fnmatch import translate
from functools import lru_cache
from typing import Final

from webhook.api import quantity
from webhook.api.pod import Container
from webhook.api.pod_resources import is_sidecar
from webhook.api.quantity import Quantity, QuantityError

DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"

DEVICES_OF_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
"""Suffix of the resource under which a quota counts devices from claims."""

DEFAULT_ACCELERATORS: Final = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",  # the device plugin's name for time-sliced GPUs, with `renameByDefault`
    "nvidia.com/mig-*",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "gpu.intel.com/i915_monitoring",  # all GPUs of the node
    "gpu.intel.com/xe_monitoring",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "aws.amazon.com/neurondevice",  # the device plugin's name until Neuron 2.19
    # https://github.com/GoogleCloudPlatform/ai-on-gke (ray-on-gke/tpu/kuberay-tpu-webhook/main.go, `tpuResourceName`)
    "google.com/tpu",
    # DeviceClasses for dynamic resource allocation.
    f"{DEVICE_CLASS}gpu.nvidia.com",
    f"{DEVICE_CLASS}mig.nvidia.com",
    f"{DEVICE_CLASS}gpu.amd.com",
    f"{DEVICE_CLASS}gpu.intel.com",
    f"{DEVICE_CLASS}gaudi.intel.com",
    f"{DEVICE_CLASS}neuron.aws.com",
    f"{DEVICE_CLASS}tpu.google.com",
)
"""`*` matches any text."""

_NEAR_DOMAIN: Final = 0.9


def misspelt_accelerator(name: str) -> str | None:
    """The default accelerator that was meant by a name such as `nvidia.com/GPUs`; None if the meaning is unclear."""
    if "/" not in name or len(name) > _NAME_MAX_LENGTH or name in DEFAULT_ACCELERATORS:
        return None
    domain, device = name.lower().rstrip("s").split("/", 1)
    for accelerator in DEFAULT_ACCELERATORS:
        right, _, kind = accelerator.partition("/")
        inside = f".{domain}".endswith(f".{right}") or right.startswith(f"{domain}.")
        if kind.rstrip("s") == device and (inside or SequenceMatcher(None, domain, right).ratio() >= _NEAR_DOMAIN):
            return accelerator
    return None


RDMA_DEVICES: Final = (
    "vpc.amazonaws.com/efa", "rdma/*", "nvidia.com/hostdev", "nvidia.com/rdma*", "nvidia.com/sriov*", "amd.com/nic",
    "amd.com/vnic",
)  # fmt: skip
"""Resource names and patterns of network adapters whose traffic bypasses the kernel."""

CORES: Final = ("aws.amazon.com/neuroncore",)
"""Resources whose unit is a core. A device has several cores (https://awsdocs-neuron.readthedocs-hosted.com)."""
MAX_CORES_PER_DEVICE: Final = {"aws.amazon.com/neuron": 8, "aws.amazon.com/neurondevice": 8}
"""No Neuron device has more than 8 cores: a Trainium2 device has 8, an earlier device has 2."""

# A qualified name is a DNS subdomain of at most 253 characters, "/", and a name of at most 63 characters. No node has a
# resource with a longer name.
_NAME_MAX_LENGTH: Final = 253 + 1 + 63
_WILDCARD: Final = re.compile(r"[*?[]")


def is_accelerator(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether the resource matches one of `patterns`. A name such as `cpu`, which has no domain, matches no pattern."""
    if "/" not in name or len(name) > _NAME_MAX_LENGTH:
        return False
    names, wildcards = _compiled(patterns)
    return name in names or (wildcards is not None and wildcards.match(name) is not None)


@lru_cache(maxsize=256)  # the patterns come from policies, never from jobs
def _compiled(patterns: tuple[str, ...]) -> tuple[frozenset[str], re.Pattern[str] | None]:
    wildcards = [pattern for pattern in patterns if _WILDCARD.search(pattern)]
    expression = re.compile("|".join(map(translate, wildcards))) if wildcards else None
    return frozenset(patterns).difference(wildcards), expression


def counted_accelerators(requests: Mapping[str, Quantity]) -> Iterator[tuple[str, int]]:
    """(name in metrics, number) of each accelerator in a pod's requests."""
    for resource, amount in requests.items():
        name = name_in_metrics(resource)
        if name and amount > 0:
            yield name, quantity.whole(amount)


def name_in_metrics(resource: str) -> str:
    """The name or pattern in DEFAULT_ACCELERATORS that the resource matches; empty if it matches none.

    The user's name is not returned, because users could then create any number of metric labels.
    """
    return next((pattern for pattern in DEFAULT_ACCELERATORS if is_accelerator(resource, (pattern,))), "")


def read(value: object) -> Quantity:
    """The quantity, or 0 if the text is invalid. The rule `upstream-contract` reports invalid quantities."""
    try:
        return quantity.parse(value)
    except QuantityError:
        return Quantity(0)


def accelerators(container: Container, patterns: tuple[str, ...]) -> int:
    """The number of accelerators that the container requests. A negative number counts as 0."""
    resources = container.resources
    if resources is None:
        return 0
    total = 0
    # If request and limit differ, the limit counts. The rule `gpus` reports the difference.
    amounts = {**(resources.requests or {}), **(resources.limits or {})}
    for name, amount in amounts.items():
        if "/" in name and is_accelerator(name, patterns):
            total += max(quantity.whole(read(amount)), 0)
    return total


def extended_resources(containers: Iterable[Container]) -> set[str]:
    """Resources such as `nvidia.com/gpu`, whose names have a domain."""
    names: set[str] = set()
    for container in containers:
        if (resources := container.resources) is not None:
            names.update(resources.limits or (), resources.requests or ())
    return {name for name in names if "/" in name}


def pod_total(containers: Iterable[tuple[str, int, Container]], patterns: tuple[str, ...]) -> int:
    """The maximum number of accelerators in use at the same time (see `pod_resources.at_once`).

    `containers` are the pod's `PodTemplate.with_devices`.
    """
    total = sidecars = peak = 0
    for field, _, container in containers:
        count = accelerators(container, patterns)
        if field == "initContainers":
            peak = max(peak, sidecars + count)
            if not is_sidecar(container):
                continue
            sidecars += count
        total += count
    return max(total, peak)
