"""References of variables and files: to fields of the pod, and to keys of other objects."""

import msgspec

from webhook.predict.pod_template.forms import Amount, NonEmpty


class FieldRef(msgspec.Struct, rename="camel", gc=False):
    """A field of the pod."""

    field_path: NonEmpty
    api_version: str | None = None


class ResourceFieldRef(msgspec.Struct, rename="camel", gc=False):
    """A resource of a container, in units of `divisor`."""

    resource: NonEmpty
    container_name: str | None = None
    divisor: Amount = None


class KeyRef(msgspec.Struct, gc=False):
    """A key of a ConfigMap or Secret."""

    key: NonEmpty
    name: NonEmpty
    optional: bool | None = None


class FileRef(msgspec.Struct, rename="camel", gc=False):
    """A variable in a file of a volume."""

    volume_name: str | None = None


class SourceRef(msgspec.Struct, gc=False):
    """A ConfigMap or Secret as a whole."""

    name: NonEmpty
    optional: bool | None = None


class LocalName(msgspec.Struct, gc=False):
    """The name of an object beside the pod, which may be missing."""

    name: str | None = None
