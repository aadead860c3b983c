"""Functions that build objects for dynamic resource allocation."""

from typing import Any

Json = dict[str, Any]
API_VERSION = "resource.k8s.io/v1"


def device_class(name: str, extended: str | None = None) -> Json:
    spec = {} if extended is None else {"extendedResourceName": extended}
    return {"apiVersion": API_VERSION, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def exactly(device_class: str = "gpu.nvidia.com", **more: Any) -> Json:
    return {"name": "r", "exactly": {"deviceClassName": device_class, **more}}


def claim_template(name: str, *requests: Json, namespace: str = "team-a", version: str = API_VERSION) -> Json:
    metadata = {"name": name, "namespace": namespace}
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    return {"apiVersion": version, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


def claims(*templates: str, role: str = "Worker") -> Json:
    """Changes to a job: its pods get a claim from each of these templates instead of GPUs."""
    spec = f"{role}.template.spec"
    pod_claims = [{"name": f"c{index}", "resourceClaimTemplateName": name} for index, name in enumerate(templates)]
    return {f"{spec}.resourceClaims": pod_claims, f"{spec}.containers.0.resources": {"limits": {"cpu": "16"}}}


def shared_claim(name: str) -> Json:
    """Changes to a job: its workers share one claim instead of GPUs."""
    changes = claims()
    changes["Worker.template.spec.resourceClaims"] = [{"name": "c0", "resourceClaimName": name}]
    return changes
