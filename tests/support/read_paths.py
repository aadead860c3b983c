"""The paths of the objects that commands read from a cluster: policies, jobs, and the resources that rules read."""

from typing import Any

from tests.support.policies import NAMESPACE
from webhook.cluster import resources
from webhook.cluster.resource import KUEUE_NAMESPACE, WatchedPlace

CONFIGMAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
MPIJOBS = "/apis/kubeflow.org/v2beta1/mpijobs"
PATHS_READ = [
    resource.path(
        version,
        {WatchedPlace.OWN: NAMESPACE, WatchedPlace.KUEUE: KUEUE_NAMESPACE}[resource.place] if resource.place else "",
    )
    for resource in resources.watched_resources()
    for version in resource.api_versions
]


def listed(*items: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "List", "metadata": {"resourceVersion": "7"}, "items": [*items]}


def empty_lists() -> dict[str, dict[str, Any]]:
    """Empty lists of all objects that commands read, by path."""
    return {path: listed() for path in (CONFIGMAPS, MPIJOBS, *PATHS_READ)}
