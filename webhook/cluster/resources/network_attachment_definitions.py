"""NetworkAttachmentDefinitions: further networks that Multus attaches pods to."""

from dataclasses import dataclass

from webhook.cluster.resource import Wire, namespaced


@dataclass(frozen=True, slots=True)
class NetworkAttachmentDefinition:
    """A network beside the cluster's own."""

    namespace: str
    name: str


def _record(found: Wire) -> NetworkAttachmentDefinition:
    return NetworkAttachmentDefinition(found.metadata.namespace, found.metadata.name)


NETWORK_ATTACHMENT_DEFINITIONS = namespaced(
    "network-attachment-definitions",
    "NetworkAttachmentDefinition",
    "k8s.cni.cncf.io/v1",
    wire=Wire,
    record=_record,
    metadata_only=True,
)
