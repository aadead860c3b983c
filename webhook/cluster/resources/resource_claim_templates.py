"""ResourceClaimTemplates: the devices that each pod gets by a claim of its own (dynamic resource allocation)."""

import sys

import msgspec

from webhook.cluster.resource import Wire, namespaced

API_VERSIONS = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1")


class DeviceChoice(msgspec.Struct, frozen=True, gc=False):
    """A number of devices of a class."""

    device_class: str
    count: int | None = 1
    """None for all devices of a node."""
    admin: bool = False
    """Whether an administrator gets access to devices that are in use. Quotas count these devices too."""


class ResourceClaimTemplate(msgspec.Struct, frozen=True, gc=False):
    """A template of claims."""

    namespace: str
    name: str
    requests: tuple[tuple[DeviceChoice, ...], ...] = ()
    """The alternatives for each request."""


class _Exact(msgspec.Struct, rename="camel", omit_defaults=True):
    device_class_name: str = ""
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None


# In v1beta1 the fields of `exactly` are fields of the request.
class _Request(_Exact, rename="camel", omit_defaults=True):
    exactly: _Exact | None = None
    first_available: list[_Exact] | None = None


class _Devices(msgspec.Struct, omit_defaults=True):
    requests: list[_Request] | None = None


class _Claim(msgspec.Struct, omit_defaults=True):
    devices: _Devices | None = None


class _Spec(msgspec.Struct, omit_defaults=True):
    spec: _Claim | None = None


class _Template(Wire):
    spec: _Spec | None = None


def _record(decoded: _Template) -> ResourceClaimTemplate:
    devices = decoded.spec and decoded.spec.spec and decoded.spec.spec.devices
    requests = (devices and devices.requests) or ()
    alternatives = ([request.exactly or request, *(request.first_available or ())] for request in requests)
    choices = (tuple(_choice(choice) for choice in request if choice.device_class_name) for request in alternatives)
    metadata = decoded.metadata
    return ResourceClaimTemplate(
        sys.intern(metadata.namespace), sys.intern(metadata.name), tuple(filter(None, choices))
    )


def _choice(choice: _Exact) -> DeviceChoice:
    count = None if choice.allocation_mode == "All" else 1 if choice.count is None else max(choice.count, 0)
    return DeviceChoice(sys.intern(choice.device_class_name), count, bool(choice.admin_access))


RESOURCE_CLAIM_TEMPLATES = namespaced(
    "resourceclaimtemplates", "ResourceClaimTemplate", *API_VERSIONS, wire=_Template, record=_record
)
