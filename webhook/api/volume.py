"""The volumes of a pod and what claims say about storage: only the fields that are read."""

import msgspec

from webhook.api.presence import Presence
from webhook.api.requirements import ResourceFieldRef, ResourceRequirements

# The older name of a claim's `storageClassName`; it wins where both are there (component-helpers
# `storage/volume/helpers.go`, `GetPersistentVolumeClaimClass`).
STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"

SHARED_MEMORY = "shared-memory"
"""The volume that the injection of this name adds: nobody who mistypes the name of his own means it."""


class KeyToPath(msgspec.Struct, gc=False):
    """A key that becomes a file."""

    key: str = ""


class ConfigMapSource(msgspec.Struct, gc=False):
    """A ConfigMap in the job's namespace; pods start without it, or one of its keys, only if it is `optional`."""

    name: str = ""
    optional: bool | None = None
    key: str = ""
    items: list[KeyToPath] | None = None


class ImageSource(msgspec.Struct, gc=False):
    """An image of a registry, mounted as a read-only volume."""

    reference: str | None = None


class EmptyDir(msgspec.Struct, gc=False):
    """Scratch space: on the node's disk, unless `medium` is `Memory` or one of the `HugePages`."""

    medium: str | None = None
    size_limit: object = msgspec.field(default=None, name="sizeLimit")


class ClaimSource(msgspec.Struct, rename="camel", gc=False):
    """A PersistentVolumeClaim in the job's namespace."""

    claim_name: str = ""


class ClaimMeta(msgspec.Struct, gc=False):
    """The metadata of a claim."""

    annotations: dict[str, str] | None = None


class ClaimSpec(msgspec.Struct, rename="camel", gc=False):
    """What a claim asks for."""

    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    resources: ResourceRequirements | None = None


class Claim(msgspec.Struct, gc=False):
    """A PersistentVolumeClaim, or the template of one."""

    metadata: ClaimMeta | None = None
    spec: ClaimSpec | None = None

    @property
    def storage_class(self) -> str | None:
        """The storage class that is asked for: None for the cluster's default, empty for none."""
        annotations = (self.metadata and self.metadata.annotations) or {}
        return annotations.get(STORAGE_CLASS, self.spec.storage_class_name if self.spec else None)


class Ephemeral(msgspec.Struct, rename="camel", gc=False):
    """A claim that comes and goes with the pod."""

    volume_claim_template: Claim | None = None


class Csi(msgspec.Struct, gc=False):
    """A volume that a CSI driver makes for the pod."""

    driver: str = ""


class DownwardItem(msgspec.Struct, rename="camel", gc=False):
    """A file with a field of the pod."""

    resource_field_ref: ResourceFieldRef | None = None


class DownwardApi(msgspec.Struct, gc=False):
    """Files with fields of the pod."""

    items: list[DownwardItem] | None = None


class ProjectedSource(msgspec.Struct, gc=False):
    """One of the sources of a projected volume."""

    config_map: ConfigMapSource | None = msgspec.field(default=None, name="configMap")
    downward_api: DownwardApi | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: Presence | None = msgspec.field(default=None, name="serviceAccountToken")


class Projected(msgspec.Struct, gc=False):
    """Several sources in one volume."""

    sources: list[ProjectedSource] | None = None


class Volume(msgspec.Struct, rename="camel", gc=False):
    """A volume, with every source that a supported release of Kubernetes can mount; one without is an `emptyDir`."""

    name: str = ""
    config_map: ConfigMapSource | None = None
    csi: Csi | None = None
    downward_api: DownwardApi | None = msgspec.field(default=None, name="downwardAPI")
    empty_dir: EmptyDir | None = None
    ephemeral: Ephemeral | None = None
    host_path: Presence | None = None
    image: ImageSource | None = None
    persistent_volume_claim: ClaimSource | None = None
    projected: Projected | None = None
    secret: Presence | None = None

    # Storage that needs no claim, so it has no storage class.
    aws_elastic_block_store: Presence | None = None
    azure_disk: Presence | None = None
    azure_file: Presence | None = None
    cephfs: Presence | None = None
    cinder: Presence | None = None
    fc: Presence | None = None
    flex_volume: Presence | None = None
    gce_persistent_disk: Presence | None = None
    iscsi: Presence | None = None
    nfs: Presence | None = None
    portworx_volume: Presence | None = None
    rbd: Presence | None = None
    vsphere_volume: Presence | None = None

    @property
    def without_claim(self) -> str | None:
        """The field of storage that needs no claim, None where there is none."""
        return next((name for attribute, name in _WITHOUT_CLAIM if getattr(self, attribute) is not None), None)

    @property
    def scratch(self) -> EmptyDir | None:
        """The scratch space, which a volume without a source is too; None for any other volume."""
        if self.empty_dir is not None:
            return self.empty_dir
        return None if any(getattr(self, name) is not None for name in _SOURCES) else EmptyDir()


_FIELDS = tuple((field.name, field.encode_name) for field in msgspec.structs.fields(Volume))
_SOURCES = tuple(name for name, _ in _FIELDS if name != "name")
_WITHOUT_CLAIM = _FIELDS[next(i for i, (name, _) in enumerate(_FIELDS) if name == "aws_elastic_block_store") :]
