"""PodGroups of the coscheduling plugin. Only the existence of the kind matters, so the selector matches no object."""

from webhook.cluster.resource import Resource, Wire, cluster_wide

COSCHEDULING_GROUPS: Resource[str, str] = cluster_wide(
    "podgroups",
    "PodGroup",
    "scheduling.x-k8s.io/v1alpha1",
    wire=Wire,
    record=lambda group: group.metadata.name,
    metadata_only=True,
    field_selector="metadata.name=none",
    awaited=False,
)
