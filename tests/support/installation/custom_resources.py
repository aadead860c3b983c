"""CRDs that accept any content, as stand-ins for the CRDs of other projects."""

from collections.abc import Sequence
from typing import Any

from tests.controlplane.cluster import Cluster


def custom_resource(
    group: str, plural: str, kind: str, *versions: str, scope: str = "Namespaced", singular: str = ""
) -> dict[str, Any]:
    """A CRD. The first version is the storage version."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "kind": kind, "singular": singular or kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": names,
            "scope": scope,
            "versions": [
                {"name": version, "served": True, "storage": version == versions[0], "schema": schema}
                for version in versions
            ],
        },
    }


def install(cluster: Cluster, definitions: Sequence[dict[str, Any]]) -> None:
    """Create the CRDs, and wait until the API server serves them."""
    cluster.apply(definitions)
    names = [definition["metadata"]["name"] for definition in definitions]
    cluster.kubectl("wait", "--for=condition=Established", "crd", *names, "--timeout=30s")
