"""Configurations that register other servers as admission webhooks."""

from collections.abc import Mapping
from typing import Any

MPIJOBS = ("kubeflow.org", "v2beta1", "mpijobs")


def configuration(
    kind: str, name: str, client: Mapping[str, Any], resource: tuple[str, str, str], **fields: Any
) -> dict[str, Any]:
    """A webhook configuration (`kind` is `Mutating` or `Validating`) with a hook for creations of the resource."""
    group, version, plural = resource
    rule = {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [plural]}
    hook = {"name": f"{name}.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "NoneOnDryRun"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{**hook, "clientConfig": client, "rules": [rule], **fields}],
    }
