"""NetworkAttachmentDefinitions: additional networks to which Multus attaches pods."""

import sys

import msgspec

from webhook.api.networks import RESOURCE_NAME
from webhook.cluster.resource import Metadata, Wire, namespaced


class NetworkAttachmentDefinition(msgspec.Struct, frozen=True):
    """An additional network."""

    namespace: str
    name: str
    resource: str = ""
    """The extended resource of which each attachment uses one unit; empty if there is none."""


class _Annotations(msgspec.Struct, omit_defaults=True):
    resource: str = msgspec.field(default="", name=RESOURCE_NAME)


class _Metadata(Metadata):
    annotations: _Annotations | None = None


class _Definition(Wire):
    metadata: _Metadata


def _record(decoded: _Definition) -> NetworkAttachmentDefinition:
    metadata = decoded.metadata
    resource = metadata.annotations.resource if metadata.annotations is not None else ""
    return NetworkAttachmentDefinition(metadata.namespace, metadata.name, sys.intern(resource))


NETWORK_ATTACHMENT_DEFINITIONS = namespaced(
    "network-attachment-definitions",
    "NetworkAttachmentDefinition",
    "k8s.cni.cncf.io/v1",
    wire=_Definition,
    record=_record,
    metadata_only=True,
)
