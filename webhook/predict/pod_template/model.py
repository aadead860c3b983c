"""A pod template with every field whose value the API server validates.

Each type narrows a type of `webhook.api.pod` to the values that the API server accepts. `reading` finds the faults of a
template that cannot be decoded. The types leave out fields that the API server drops if a feature gate is off.
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from webhook.api import pod
from webhook.api.pod import Presence

NonEmpty = Annotated[str, Meta(min_length=1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
NotNegative = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)]
LongPositive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Percentage = Annotated[int, Meta(ge=1, le=100)]
MOST_OF_A_MODE: Final = 0o777
FileMode = Annotated[int, Meta(ge=0, le=MOST_OF_A_MODE)]
PortNumber = Annotated[int, Meta(ge=1, le=65535)]
HostPort = Annotated[int, Meta(ge=0, le=65535)]
PortReference = PortNumber | str
"""A number or a name."""
UserId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Amount = Annotated[int | str | None, Meta(extra={"read": "webhook.api.quantity"})]
"""A quantity. Invalid texts are accepted, because another rule reports them."""
Strings = dict[str, str | None]

PullPolicy = Literal["", "Always", "IfNotPresent", "Never"]
NodeOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
FieldOperator = Literal["In", "NotIn"]
SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
Inclusion = Literal["Honor", "Ignore"]


class FieldRef(pod.Presence, rename="camel", gc=False, kw_only=True):
    field_path: NonEmpty
    api_version: str | None = None


class ResourceFieldRef(pod.ResourceFieldRef, rename="camel", gc=False, kw_only=True):
    resource: NonEmpty
    container_name: str | None = None
    divisor: Amount = None


class KeyRef(pod.ConfigMapSource, gc=False, kw_only=True):
    key: NonEmpty
    name: NonEmpty


class FileRef(msgspec.Struct, rename="camel", gc=False):
    volume_name: str | None = None


class SourceRef(pod.ConfigMapSource, gc=False, kw_only=True):
    name: NonEmpty


class LocalName(msgspec.Struct, gc=False):
    name: str | None = None


class Requirement(pod.Presence, gc=False):
    key: NonEmpty
    operator: SelectorOperator
    values: list[str] | None = None


class Selector(pod.Presence, rename="camel", gc=False, kw_only=True):
    match_labels: Strings | None = None
    match_expressions: list[Requirement] | None = None


class PodSelector(pod.PodLabels, rename="camel", gc=False):
    match_expressions: list[Requirement] | None = None


class KeyToPath(pod.KeyToPath, gc=False, kw_only=True):
    key: NonEmpty
    path: NonEmpty
    mode: FileMode | None = None


class SecretSource(pod.Presence, rename="camel", gc=False, kw_only=True):
    secret_name: NonEmpty
    items: list[KeyToPath] | None = None
    default_mode: FileMode | None = None
    optional: bool | None = None


class ConfigMapSource(pod.ConfigMapSource, rename="camel", gc=False, kw_only=True):
    name: NonEmpty
    items: list[KeyToPath] | None = None
    default_mode: FileMode | None = None


class ObjectProjection(SourceRef, gc=False, kw_only=True):
    items: list[KeyToPath] | None = None


class DownwardFile(pod.DownwardItem, rename="camel", gc=False, kw_only=True):
    path: NonEmpty
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    mode: FileMode | None = None


class DownwardSource(pod.DownwardApi, rename="camel", gc=False, kw_only=True):
    items: list[DownwardFile] | None = None
    default_mode: FileMode | None = None


class TokenProjection(pod.Presence, rename="camel", gc=False, kw_only=True):
    path: NonEmpty
    expiration_seconds: Annotated[int, Meta(ge=600, le=2**32)] | None = None
    audience: str | None = None


class Projection(pod.ProjectedSource, rename="camel", gc=False, kw_only=True):
    secret: ObjectProjection | None = None
    config_map: ObjectProjection | None = None
    downward_api: DownwardSource | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: TokenProjection | None = None


class ProjectedSource(pod.Projected, rename="camel", gc=False, kw_only=True):
    sources: list[Projection] | None = None
    default_mode: FileMode | None = None


class EmptyDir(pod.EmptyDir, rename="camel", gc=False, kw_only=True):
    size_limit: Amount = None


class HostPath(pod.Presence, gc=False, kw_only=True):
    path: NonEmpty
    type: (
        Literal["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"]
        | None
    ) = None


class ClaimSource(pod.ClaimSource, rename="camel", gc=False, kw_only=True):
    claim_name: NonEmpty
    read_only: bool | None = None


class ImageSource(pod.ImageSource, rename="camel", gc=False, kw_only=True):
    reference: NonEmpty
    pull_policy: PullPolicy | None = None


class Csi(pod.Csi, rename="camel", gc=False, kw_only=True):
    driver: NonEmpty
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: Strings | None = None
    node_publish_secret_ref: LocalName | None = None


class Nfs(pod.Presence, rename="camel", gc=False, kw_only=True):
    server: NonEmpty
    path: NonEmpty
    read_only: bool | None = None


class ClaimMeta(pod.ClaimMeta, gc=False, kw_only=True):
    """Only labels and annotations may be set. The other fields are decoded so that a fault can be reported."""

    labels: Strings | None = None
    name: str | None = None
    namespace: str | None = None
    finalizers: list[str] | None = None


class ClaimResources(pod.ResourceRequirements, gc=False, kw_only=True):
    requests: dict[str, Amount] | None = None
    limits: dict[str, Amount] | None = None


class ClaimUse(pod.Presence, gc=False, kw_only=True):
    name: NonEmpty
    request: str | None = None


class Resources(ClaimResources, gc=False, kw_only=True):
    claims: list[ClaimUse] | None = None


AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]


class DataSource(msgspec.Struct, rename="camel", gc=False):
    kind: NonEmpty
    name: NonEmpty
    api_group: str | None = None


class ClaimSpec(pod.ClaimSpec, rename="camel", gc=False, kw_only=True):
    access_modes: Annotated[list[AccessMode], Meta(min_length=1)]
    resources: ClaimResources = msgspec.field(default_factory=ClaimResources)
    selector: Selector | None = None
    volume_mode: Literal["Block", "Filesystem"] | None = None
    volume_name: str | None = None
    data_source: DataSource | None = None
    data_source_ref: DataSource | None = None


class ClaimTemplate(pod.Claim, gc=False, kw_only=True):
    spec: ClaimSpec
    metadata: ClaimMeta | None = None


class Ephemeral(pod.Ephemeral, rename="camel", gc=False, kw_only=True):
    volume_claim_template: ClaimTemplate


class Volume(pod.Volume, rename="camel", gc=False, kw_only=True):
    """At most one source may be set. A volume without a source is an `emptyDir`."""

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
    aws_elastic_block_store: Presence | None = None
    azure_disk: Presence | None = None
    azure_file: Presence | None = None
    cephfs: Presence | None = None
    cinder: Presence | None = None
    fc: Presence | None = None
    flex_volume: Presence | None = None
    flocker: Presence | None = None
    gce_persistent_disk: Presence | None = None
    git_repo: Presence | None = None
    glusterfs: Presence | None = None
    iscsi: Presence | None = None
    photon_persistent_disk: Presence | None = None
    portworx_volume: Presence | None = None
    quobyte: Presence | None = None
    rbd: Presence | None = None
    scale_io: Presence | None = msgspec.field(default=None, name="scaleIO")
    storageos: Presence | None = None
    vsphere_volume: Presence | None = None


_NAMES = dict(zip(Volume.__struct_fields__, Volume.__struct_encode_fields__, strict=True))
SOURCES = tuple((field, _NAMES[field]) for field in Volume.__annotations__ if field != "name")
"""(attribute, name in YAML) of each volume source."""


class Exec(msgspec.Struct, gc=False):
    command: Annotated[list[str], Meta(min_length=1)]


class Header(msgspec.Struct, gc=False):
    name: NonEmpty
    value: str | None = None


class HttpGet(msgspec.Struct, rename="camel", gc=False):
    port: PortReference
    path: str | None = None
    host: str | None = None
    scheme: Literal["", "HTTP", "HTTPS"] | None = None
    http_headers: list[Header] | None = None


class TcpSocket(msgspec.Struct, gc=False):
    port: PortReference
    host: str | None = None


class Grpc(msgspec.Struct, gc=False):
    port: PortNumber
    service: str | None = None


class Sleep(msgspec.Struct, gc=False):
    seconds: Int64 | None = None


class LifecycleHandler(msgspec.Struct, rename="camel", gc=False):
    """Exactly one field must be set."""

    exec: Exec | None = None
    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    sleep: Sleep | None = None


class Lifecycle(msgspec.Struct, rename="camel", gc=False):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None


class Probe(pod.Probe, rename="camel", gc=False):
    """Exactly one of the first four fields must be set."""

    exec: Exec | None = None
    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    grpc: Grpc | None = None
    initial_delay_seconds: NotNegative | None = None
    timeout_seconds: NotNegative | None = None
    period_seconds: NotNegative | None = None
    success_threshold: NotNegative | None = None
    failure_threshold: NotNegative | None = None
    termination_grace_period_seconds: LongPositive | None = None


class ReadinessProbe(Probe, rename="camel", gc=False):
    """A readiness probe."""


class ProbeOfLife(Probe, rename="camel", gc=False):
    """A liveness or startup probe."""

    success_threshold: Literal[0, 1] | None = None


Profiles = Literal["Localhost", "RuntimeDefault", "Unconfined"]


class Profile(msgspec.Struct, rename="camel", gc=False):
    type: Profiles
    localhost_profile: str | None = None


class SELinuxOptions(msgspec.Struct, gc=False):
    user: str | None = None
    role: str | None = None
    type: str | None = None
    level: str | None = None


class SecurityContext(pod.SecurityContext, rename="camel", gc=False):
    run_as_user: UserId | None = None
    run_as_group: UserId | None = None
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: Presence | None = None
    privileged: bool | None = None
    allow_privilege_escalation: bool | None = None
    read_only_root_filesystem: bool | None = None
    proc_mount: Literal["Default", "Unmasked"] | None = None


class Sysctl(msgspec.Struct, gc=False):
    name: NonEmpty
    value: str | None = None


class PodSecurityContext(pod.PodSecurityContext, rename="camel", gc=False):
    run_as_user: UserId | None = None
    run_as_group: UserId | None = None
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: Presence | None = None
    fs_group: UserId | None = None
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = None
    supplemental_groups: list[UserId] | None = None
    supplemental_groups_policy: Literal["Merge", "Strict"] | None = None
    se_linux_change_policy: Literal["Recursive", "MountOption"] | None = None
    sysctls: list[Sysctl] | None = None


class Port(pod.ContainerPort, rename="camel", gc=False, kw_only=True):
    container_port: PortNumber
    protocol: Literal["", "TCP", "UDP", "SCTP"] | None = None
    host_port: HostPort | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")


class ValueFrom(pod.ValueFrom, rename="camel", gc=False, kw_only=True):
    """Exactly one field must be set."""

    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None
    file_key_ref: FileRef | None = None


class EnvVar(pod.EnvVar, rename="camel", gc=False, kw_only=True):
    name: NonEmpty
    value_from: ValueFrom | None = None


class EnvFrom(pod.EnvFrom, rename="camel", gc=False, kw_only=True):
    """Exactly one reference must be set."""

    prefix: str | None = None
    config_map_ref: SourceRef | None = None
    secret_ref: SourceRef | None = None


class VolumeMount(pod.VolumeMount, rename="camel", gc=False, kw_only=True):
    name: NonEmpty
    mount_path: NonEmpty
    sub_path: str | None = None
    sub_path_expr: str | None = None
    read_only: bool | None = None
    mount_propagation: Literal["None", "HostToContainer", "Bidirectional"] | None = None
    recursive_read_only: Literal["Disabled", "IfPossible", "Enabled"] | None = None


class VolumeDevice(msgspec.Struct, rename="camel", gc=False):
    name: NonEmpty
    device_path: NonEmpty


class ResizePolicy(msgspec.Struct, rename="camel", gc=False):
    resource_name: Literal["cpu", "memory"]
    restart_policy: Literal["NotRequired", "RestartContainer"]


class Container(pod.Container, rename="camel", kw_only=True):
    name: NonEmpty
    image_pull_policy: PullPolicy | None = None
    working_dir: str | None = None
    ports: list[Port] | None = None
    env: list[EnvVar] | None = None
    env_from: list[EnvFrom] | None = None
    resources: Resources | None = None
    resize_policy: list[ResizePolicy] | None = None
    restart_policy: Literal["Always", "Never", "OnFailure"] | None = None
    volume_mounts: list[VolumeMount] | None = None
    volume_devices: list[VolumeDevice] | None = None
    liveness_probe: ProbeOfLife | None = None
    readiness_probe: ReadinessProbe | None = None
    startup_probe: ProbeOfLife | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str | None = None
    termination_message_policy: Literal["", "File", "FallbackToLogsOnError"] | None = None
    security_context: SecurityContext | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    tty: bool | None = None

    @property
    def probes(self) -> list[tuple[str, Probe]]:
        """(name in YAML, probe) of each probe."""
        liveness, readiness, startup = self.liveness_probe, self.readiness_probe, self.startup_probe
        fields = (("livenessProbe", liveness), ("readinessProbe", readiness), ("startupProbe", startup))
        return [(field, probe) for field, probe in fields if probe is not None]


class Toleration(pod.Toleration, rename="camel", gc=False, kw_only=True):
    """The operators Lt and Gt need a feature gate of the API server."""

    operator: Literal["", "Equal", "Exists", "Lt", "Gt"] | None = None
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: Int64 | None = None


class NodeRequirement(pod.NodeRequirement, gc=False, kw_only=True):
    key: NonEmpty
    operator: NodeOperator


class FieldRequirement(pod.NodeRequirement, gc=False, kw_only=True):
    key: Literal["metadata.name"]
    operator: FieldOperator
    values: Annotated[list[NonEmpty], Meta(min_length=1, max_length=1)]


class NodeTerm(pod.NodeTerm, rename="camel", gc=False, kw_only=True):
    """A node must meet all conditions."""

    match_expressions: list[NodeRequirement] | None = None
    match_fields: list[FieldRequirement] | None = None


class NodeTerms(pod.NodeTerms, rename="camel", gc=False, kw_only=True):
    """A node must meet at least one term."""

    node_selector_terms: Annotated[list[NodeTerm], Meta(min_length=1)]


class PreferredNodes(msgspec.Struct, gc=False):
    weight: Percentage
    preference: NodeTerm | None = None


class NodeAffinity(pod.NodeAffinity, rename="camel", gc=False, kw_only=True):
    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodes] | None = None


class PodAffinityTerm(pod.PodAffinityTerm, rename="camel", gc=False, kw_only=True):
    topology_key: NonEmpty
    label_selector: PodSelector | None = None
    namespace_selector: Selector | None = None
    namespaces: list[NonEmpty] | None = None
    match_label_keys: list[NonEmpty] | None = None
    mismatch_label_keys: list[NonEmpty] | None = None


class WeightedTerm(pod.WeightedPodAffinityTerm, rename="camel", gc=False, kw_only=True):
    weight: Percentage
    pod_affinity_term: PodAffinityTerm


class PodAffinity(pod.PodAffinity, rename="camel", gc=False, kw_only=True):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedTerm] | None = None


class Affinity(pod.Affinity, rename="camel", gc=False, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(pod.Presence, rename="camel", gc=False, kw_only=True):
    max_skew: Positive
    topology_key: NonEmpty
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: Selector | None = None
    min_domains: Positive | None = None
    node_affinity_policy: Inclusion | None = None
    node_taints_policy: Inclusion | None = None
    match_label_keys: list[NonEmpty] | None = None


class DnsOption(msgspec.Struct, gc=False):
    name: NonEmpty
    value: str | None = None


class DnsConfig(msgspec.Struct, gc=False):
    nameservers: Annotated[list[NonEmpty], Meta(max_length=3)] | None = None
    searches: Annotated[list[NonEmpty], Meta(max_length=32)] | None = None
    options: list[DnsOption] | None = None


class HostAlias(msgspec.Struct, gc=False):
    ip: NonEmpty
    hostnames: list[NonEmpty] | None = None


class ReadinessGate(msgspec.Struct, rename="camel", gc=False):
    condition_type: NonEmpty


class SchedulingGate(msgspec.Struct, gc=False):
    name: NonEmpty


class ResourceClaim(pod.PodResourceClaim, rename="camel", gc=False, kw_only=True):
    name: NonEmpty


class OperatingSystem(pod.PodOS, gc=False, kw_only=True):
    name: Literal["linux", "windows"]


class PodSpec(pod.PodSpec, rename="camel", gc=False, kw_only=True):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Presence] | None = None
    volumes: list[Volume] | None = None
    active_deadline_seconds: Positive | None = None
    affinity: Affinity | None = None
    dns_config: DnsConfig | None = None
    dns_policy: Literal["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"] | None = None
    enable_service_links: bool | None = None
    host_aliases: list[HostAlias] | None = None
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    host_users: bool | None = None
    node_name: str | None = None
    os: OperatingSystem | None = None
    overhead: dict[str, Amount] | None = None
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None
    priority: Int32 | None = None
    readiness_gates: list[ReadinessGate] | None = None
    resource_claims: list[ResourceClaim] | None = None
    resources: Resources | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    security_context: PodSecurityContext | None = None
    set_hostname_as_fqdn: bool | None = msgspec.field(default=None, name="setHostnameAsFQDN")
    share_process_namespace: bool | None = None
    termination_grace_period_seconds: Int64 | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None


class Template(pod.PodTemplate, kw_only=True):
    spec: PodSpec | None = None
