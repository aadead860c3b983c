"""The paths of the objects that commands read from a cluster: policies, jobs, and the resources of rules."""

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
