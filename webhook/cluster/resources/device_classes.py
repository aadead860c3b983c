"""DeviceClasses: the extended resources with which pods may request devices of a class without a claim."""

import msgspec

from webhook.cluster.resource import Wire, cluster_wide
from webhook.cluster.resources.resource_claim_templates import API_VERSIONS


class DeviceClass(msgspec.Struct, frozen=True):
    """A device class. `extended_resource` may be empty."""

    name: str
    extended_resource: str = ""


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    extended_resource_name: str | None = None


class _DeviceClass(Wire):
    spec: _Spec | None = None


def _record(decoded: _DeviceClass) -> DeviceClass:
    return DeviceClass(decoded.metadata.name, (decoded.spec and decoded.spec.extended_resource_name) or "")


DEVICE_CLASSES = cluster_wide("deviceclasses", "DeviceClass", *API_VERSIONS, wire=_DeviceClass, record=_record)
