"""PodGroups of the coscheduling plugin: only whether the API server has the kind, so no object is read."""

from webhook.cluster.resource import ByNamespace, Resource, Wire, namespaced

COSCHEDULING_GROUPS: Resource[ByNamespace, None] = namespaced(
    "podgroups",
    "PodGroup",
    "scheduling.x-k8s.io/v1alpha1",
    wire=Wire,
    record=lambda _: None,
    metadata_only=True,
    label_selector="training.openshift.io/none",
    awaited=False,
)
