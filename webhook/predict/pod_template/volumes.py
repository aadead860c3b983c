"""Volumes of a pod template and where they come from."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from webhook.api.presence import Presence
from webhook.predict.pod_template.forms import Amount, Byte, FileMode, NonEmpty, PullPolicy, Strings
from webhook.predict.pod_template.references import FieldRef, LocalName, ResourceFieldRef
from webhook.predict.pod_template.scheduling import Selector


class KeyToPath(msgspec.Struct, gc=False):
    """A key of an object, and its file."""

    key: NonEmpty
    path: NonEmpty
    mode: FileMode | None = None


class SecretSource(msgspec.Struct, rename="camel", gc=False):
    """A Secret."""

    secret_name: NonEmpty
    items: list[KeyToPath] | None = None
    default_mode: FileMode | None = None
    optional: bool | None = None


class ConfigMapSource(msgspec.Struct, rename="camel", gc=False):
    """A ConfigMap."""

    name: NonEmpty
    items: list[KeyToPath] | None = None
    default_mode: FileMode | None = None
    optional: bool | None = None


class ObjectProjection(msgspec.Struct, gc=False):
    """A Secret or ConfigMap as one source of several."""

    name: NonEmpty
    items: list[KeyToPath] | None = None
    optional: bool | None = None


class DownwardFile(msgspec.Struct, rename="camel", gc=False):
    """A file with a field of the pod."""

    path: NonEmpty
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    mode: FileMode | None = None


class DownwardSource(msgspec.Struct, rename="camel", gc=False):
    """Files with fields of the pod."""

    items: list[DownwardFile] | None = None
    default_mode: FileMode | None = None


class TokenProjection(msgspec.Struct, rename="camel", gc=False):
    """A token of the service account."""

    path: NonEmpty
    expiration_seconds: Annotated[int, Meta(ge=600, le=2**32)] | None = None
    audience: str | None = None


class Projection(msgspec.Struct, rename="camel", gc=False):
    """One of several sources in a volume."""

    secret: ObjectProjection | None = None
    config_map: ObjectProjection | None = None
    downward_api: DownwardSource | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: TokenProjection | None = None


class ProjectedSource(msgspec.Struct, rename="camel", gc=False):
    """Several sources in one volume."""

    sources: list[Projection] | None = None
    default_mode: FileMode | None = None


class EmptyDir(msgspec.Struct, rename="camel", gc=False):
    """Scratch space."""

    medium: str | None = None
    size_limit: Amount = None


class HostPath(msgspec.Struct, gc=False):
    """A file or folder of the node."""

    path: NonEmpty
    type: (
        Literal["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"]
        | None
    ) = None


class ClaimSource(msgspec.Struct, rename="camel", gc=False):
    """A PersistentVolumeClaim."""

    claim_name: NonEmpty
    read_only: bool | None = None


class ImageSource(msgspec.Struct, rename="camel", gc=False):
    """An image as a volume."""

    reference: NonEmpty
    pull_policy: PullPolicy | None = None


class Csi(msgspec.Struct, rename="camel", gc=False):
    """A volume that a CSI driver makes for the pod."""

    driver: NonEmpty
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: Strings | None = None
    node_publish_secret_ref: LocalName | None = None


class Nfs(msgspec.Struct, rename="camel", gc=False):
    """A share of an NFS server."""

    server: NonEmpty
    path: NonEmpty
    read_only: bool | None = None


class Iscsi(msgspec.Struct, rename="camel", gc=False):
    """An iSCSI disk."""

    target_portal: NonEmpty
    iqn: NonEmpty
    lun: Byte | None = None


class Rbd(msgspec.Struct, rename="camel", gc=False):
    """A Ceph block device."""

    monitors: Annotated[list[str], Meta(min_length=1)]
    image: NonEmpty


class CephFs(msgspec.Struct, rename="camel", gc=False):
    """A Ceph file system."""

    monitors: Annotated[list[str], Meta(min_length=1)]


class AzureFile(msgspec.Struct, rename="camel", gc=False):
    """A share of Azure."""

    secret_name: NonEmpty
    share_name: NonEmpty


class AzureDisk(msgspec.Struct, rename="camel", gc=False):
    """A disk of Azure."""

    disk_name: NonEmpty
    disk_uri: NonEmpty = msgspec.field(name="diskURI")
    caching_mode: Literal["None", "ReadOnly", "ReadWrite"] | None = None
    kind: Literal["Shared", "Dedicated", "Managed"] | None = None


class Disk(msgspec.Struct, rename="camel", gc=False):
    """A disk of AWS or Cinder."""

    volume_id: NonEmpty = msgspec.field(name="volumeID")


class GceDisk(msgspec.Struct, rename="camel", gc=False):
    """A disk of Google."""

    pd_name: NonEmpty
    partition: Byte | None = None


class AwsDisk(Disk, rename="camel", gc=False):
    """A disk of AWS."""

    partition: Byte | None = None


class GitRepo(msgspec.Struct, gc=False):
    """A Git repository, for old releases."""

    repository: NonEmpty
    directory: str | None = None


class FlexVolume(msgspec.Struct, gc=False):
    """A volume of a Flex driver."""

    driver: NonEmpty


class VsphereDisk(msgspec.Struct, rename="camel", gc=False):
    """A disk of vSphere."""

    volume_path: NonEmpty


class PhotonDisk(msgspec.Struct, rename="camel", gc=False):
    """A disk of Photon."""

    pd_id: NonEmpty = msgspec.field(name="pdID")


class Portworx(msgspec.Struct, rename="camel", gc=False):
    """A volume of Portworx."""

    volume_id: NonEmpty = msgspec.field(name="volumeID")


class Glusterfs(msgspec.Struct, gc=False):
    """A volume of GlusterFS."""

    endpoints: NonEmpty
    path: NonEmpty


class Quobyte(msgspec.Struct, gc=False):
    """A volume of Quobyte."""

    registry: NonEmpty
    volume: NonEmpty


class ScaleIo(msgspec.Struct, rename="camel", gc=False):
    """A volume of ScaleIO."""

    gateway: NonEmpty
    system: NonEmpty
    secret_ref: Presence
    volume_name: NonEmpty


class ClaimMeta(msgspec.Struct, gc=False):
    """The metadata of a claim's template. Labels and annotations alone may be set; the rest is what a job can hold."""

    labels: Strings | None = None
    annotations: Strings | None = None
    name: str | None = None
    namespace: str | None = None
    finalizers: list[str] | None = None


class ClaimResources(msgspec.Struct, gc=False):
    """How much storage."""

    requests: dict[str, Amount] | None = None
    limits: dict[str, Amount] | None = None


AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]


class DataSource(msgspec.Struct, rename="camel", gc=False):
    """What the volume is filled with."""

    kind: NonEmpty
    name: NonEmpty
    api_group: str | None = None


class ClaimSpec(msgspec.Struct, rename="camel", gc=False):
    """What a claim asks for."""

    access_modes: Annotated[list[AccessMode], Meta(min_length=1)]
    resources: ClaimResources = msgspec.field(default_factory=ClaimResources)
    selector: Selector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: Literal["Block", "Filesystem"] | None = None
    volume_name: str | None = None
    data_source: DataSource | None = None
    data_source_ref: DataSource | None = None


class ClaimTemplate(msgspec.Struct, gc=False):
    """A claim that comes and goes with the pod."""

    spec: ClaimSpec
    metadata: ClaimMeta | None = None


class Ephemeral(msgspec.Struct, rename="camel", gc=False):
    """A volume with a claim of its own."""

    volume_claim_template: ClaimTemplate


class Volume(msgspec.Struct, rename="camel", gc=False):
    """A volume: at most one of its sources is set, and without one it is an `emptyDir`."""

    name: NonEmpty
    config_map: ConfigMapSource | None = None
    csi: Csi | None = None
    downward_api: DownwardSource | None = msgspec.field(default=None, name="downwardAPI")
    empty_dir: EmptyDir | None = None
    ephemeral: Ephemeral | None = None
    host_path: HostPath | None = None
    image: ImageSource | None = None
    nfs: Nfs | None = None
    persistent_volume_claim: ClaimSource | None = None
    projected: ProjectedSource | None = None
    secret: SecretSource | None = None
    aws_elastic_block_store: AwsDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cephfs: CephFs | None = None
    cinder: Disk | None = None
    fc: Presence | None = None
    flex_volume: FlexVolume | None = None
    flocker: Presence | None = None
    gce_persistent_disk: GceDisk | None = None
    git_repo: GitRepo | None = None
    glusterfs: Glusterfs | None = None
    iscsi: Iscsi | None = None
    photon_persistent_disk: PhotonDisk | None = None
    portworx_volume: Portworx | None = None
    quobyte: Quobyte | None = None
    rbd: Rbd | None = None
    scale_io: ScaleIo | None = msgspec.field(default=None, name="scaleIO")
    storageos: Presence | None = None
    vsphere_volume: VsphereDisk | None = None


SOURCES = tuple((field.name, field.encode_name) for field in msgspec.structs.fields(Volume) if field.name != "name")
"""The fields of a volume's sources: as attributes, and in YAML."""
