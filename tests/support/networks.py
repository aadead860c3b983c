"""NetworkAttachmentDefinitions for tests."""

from typing import Any

RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"


def network(name: str, resource: str = "", *, namespace: str = "fabric") -> dict[str, Any]:
    """A network. If `resource` is set, each attachment to the network needs a device of this resource."""
    annotations = {"annotations": {RESOURCE_NAME: resource, "other": "1"}} if resource else {}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": namespace, **annotations},
    }
