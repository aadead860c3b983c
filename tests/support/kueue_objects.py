"""Short forms of Kueue's objects for tests."""

from collections.abc import Mapping
from typing import Any

from webhook.cluster.resources.kueue_config import KEY, NAME

Json = dict[str, Any]
API_VERSION = "kueue.x-k8s.io/v1beta2"

Limits = str | int | tuple[str | int, str | int | None, str | int | None]
"""A nominal quota, or a nominal quota with a borrowing limit and a lending limit."""
Quotas = Mapping[str, Mapping[str, Limits]]
"""A resource group: quotas by flavor and resource."""


def manifest(kind: str, name: str, spec: Json, *, namespace: str = "", status: Json | None = None) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    fields = {"metadata": metadata, "spec": spec, **({"status": status} if status else {})}
    return {"apiVersion": API_VERSION, "kind": kind, **fields}


def cluster_queue(name: str, *groups: Quotas, cohort: str | None = None, inactive: str = "", **spec: Any) -> Json:
    """A ClusterQueue, by default for all namespaces."""
    member = {"cohortName": cohort} if cohort else {}
    fields = {"namespaceSelector": {}, "resourceGroups": resource_groups(*groups), **member, **spec}
    return manifest("ClusterQueue", name, fields, status=active(inactive))


def local_queue(name: str, cluster_queue: str, *, namespace: str = "team-a", inactive: str = "", **spec: Any) -> Json:
    fields = {"clusterQueue": cluster_queue, **spec}
    return manifest("LocalQueue", name, fields, namespace=namespace, status=active(inactive))


def cohort(name: str, *groups: Quotas, parent: str | None = None) -> Json:
    child = {"parentName": parent} if parent else {}
    return manifest("Cohort", name, {"resourceGroups": resource_groups(*groups), **child})


def flavor(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
    return manifest("ResourceFlavor", name, {"nodeLabels": dict(labels or {}), **spec})


def topology(name: str, *levels: str) -> Json:
    return manifest("Topology", name, {"levels": [{"nodeLabel": level} for level in levels]})


def workload_priority_class(name: str) -> Json:
    return {"apiVersion": API_VERSION, "kind": "WorkloadPriorityClass", "metadata": {"name": name}}


def priority_class(name: str, **fields: Any) -> Json:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, **fields}


def namespace(name: str = "team-a", **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


CONFIG = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, kubeflow.org/mpijob]}
"""


def config(extra: str = "", text: str = CONFIG) -> Json:
    metadata = {"name": NAME, "namespace": "kueue-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text + extra}}


def active(reason: str) -> Json:
    """A complete status. At the creation of an object, a real API server accepts and ignores the status."""
    condition = {"type": "Active", "status": "False" if reason else "True", "reason": reason or "Ready"}
    return {"conditions": [{**condition, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}


def resource_groups(*groups: Quotas) -> list[Json]:
    return [
        {
            "coveredResources": list(next(iter(quotas.values()))),
            "flavors": [
                {"name": name, "resources": [quota(resource, limits) for resource, limits in resources.items()]}
                for name, resources in quotas.items()
            ],
        }
        for quotas in groups
    ]


def quota(resource: str, limits: Limits) -> Json:
    nominal, borrowing, lending = limits if isinstance(limits, tuple) else (limits, None, None)
    fields = {"name": resource, "nominalQuota": nominal, "borrowingLimit": borrowing, "lendingLimit": lending}
    return {key: value for key, value in fields.items() if value is not None}
