"""DeviceClasses. Pods may request devices of a class by an extended resource, without a claim."""

import msgspec

from webhook.cluster.resource import Wire, cluster_wide
from webhook.cluster.resources.resource_claim_templates import API_VERSIONS


class DeviceClass(msgspec.Struct, frozen=True):
    """A device class."""

    name: str
    extended_resource: str = ""
    """The name of the extended resource; empty for none."""


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    extended_resource_name: str | None = None


class _DeviceClass(Wire):
    spec: _Spec | None = None


def _record(decoded: _DeviceClass) -> DeviceClass:
    return DeviceClass(decoded.metadata.name, (decoded.spec and decoded.spec.extended_resource_name) or "")


DEVICE_CLASSES = cluster_wide("deviceclasses", "DeviceClass", *API_VERSIONS, wire=_DeviceClass, record=_record)
