"""The fields of a pod template that the service reads.

Every field may be absent or null: mutating webhooks get objects before schema validation, and files are not validated.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

WINDOWS: Final = "windows"
OS_LABEL: Final = "kubernetes.io/os"
# An older annotation that overrides a claim's `storageClassName` (component-helpers `storage/volume/helpers.go`,
# `GetPersistentVolumeClaimClass`).
STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"

SHARED_MEMORY = "shared-memory"
"""The name of the volume that the injection `shared-memory` adds."""


class Presence(msgspec.Struct, gc=False):
    """A field that is only checked for presence."""


class ResourceRequirements(msgspec.Struct, gc=False):
    """Quantities as written, by resource name. `claims` refers to devices (dynamic resource allocation)."""

    requests: Mapping[str, object] | None = None
    limits: Mapping[str, object] | None = None
    claims: Sequence[Presence | None] | None = None


class ResourceFieldRef(msgspec.Struct, gc=False):
    """A container's resource, in units of the quantity `divisor`."""

    divisor: object = None


class KeyToPath(msgspec.Struct, gc=False):
    key: str = ""


class ConfigMapSource(msgspec.Struct, gc=False):
    """A ConfigMap in the job's namespace. If it or a key is missing, pods start only if `optional` is true."""

    name: str = ""
    optional: bool | None = None
    key: str = ""
    items: Sequence[KeyToPath] | None = None
    default_mode: object = msgspec.field(default=None, name="defaultMode")
    """The mode of the volume's files, 0644 by default."""


class ImageSource(msgspec.Struct, gc=False):
    """An image that is mounted as a read-only volume."""

    reference: str | None = None


class EmptyDir(msgspec.Struct, gc=False):
    """Scratch space on the node's disk, or in memory if `medium` is `Memory` or starts with `HugePages`."""

    medium: str | None = None
    size_limit: object = msgspec.field(default=None, name="sizeLimit")


class ClaimSource(msgspec.Struct, rename="camel", gc=False):
    claim_name: str = ""


class ClaimMeta(msgspec.Struct, gc=False):
    annotations: dict[str, str] | None = None


class ClaimSpec(msgspec.Struct, rename="camel", gc=False):
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    resources: ResourceRequirements | None = None


class Claim(msgspec.Struct, gc=False):
    metadata: ClaimMeta | None = None
    spec: ClaimSpec | None = None

    @property
    def storage_class(self) -> str | None:
        """The requested storage class. None means the cluster's default class, an empty text means no class."""
        annotations = (self.metadata and self.metadata.annotations) or {}
        return annotations.get(STORAGE_CLASS, self.spec.storage_class_name if self.spec else None)


class Ephemeral(msgspec.Struct, rename="camel", gc=False):
    """A claim that is deleted with its pod."""

    volume_claim_template: Claim | None = None


class Csi(msgspec.Struct, gc=False):
    driver: str = ""


class DownwardItem(msgspec.Struct, rename="camel", gc=False):
    resource_field_ref: ResourceFieldRef | None = None


class DownwardApi(msgspec.Struct, gc=False):
    items: Sequence[DownwardItem] | None = None


class ProjectedSource(msgspec.Struct, gc=False):
    config_map: ConfigMapSource | None = msgspec.field(default=None, name="configMap")
    downward_api: DownwardApi | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: Presence | None = msgspec.field(default=None, name="serviceAccountToken")


class Projected(msgspec.Struct, gc=False):
    sources: Sequence[ProjectedSource] | None = None


class Volume(msgspec.Struct, rename="camel", gc=False):
    """A volume without a source is an `emptyDir`."""

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

    # These sources need no claim, so they have no storage class.
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
        return next((name for attribute, name in _WITHOUT_CLAIM if getattr(self, attribute) is not None), None)

    @property
    def scratch(self) -> EmptyDir | None:
        """The `emptyDir`, which may be implied; None if the volume has a different source."""
        if self.empty_dir is not None:
            return self.empty_dir
        return None if any(getattr(self, name) is not None for name in _SOURCES) else EmptyDir()


_FIELDS = tuple((field.name, field.encode_name) for field in msgspec.structs.fields(Volume))
_SOURCES = tuple(name for name, _ in _FIELDS if name != "name")
_WITHOUT_CLAIM = _FIELDS[next(i for i, (name, _) in enumerate(_FIELDS) if name == "aws_elastic_block_store") :]


class ValueFrom(msgspec.Struct, rename="camel", gc=False):
    config_map_key_ref: ConfigMapSource | None = None
    field_ref: Presence | None = None
    resource_field_ref: ResourceFieldRef | None = None


class EnvFrom(msgspec.Struct, rename="camel", gc=False):
    config_map_ref: ConfigMapSource | None = None


class EnvVar(msgspec.Struct, rename="camel", gc=False):
    """An environment variable. `value` is None if `value_from` is set."""

    name: str
    value: str | None = None
    value_from: ValueFrom | None = None


class VolumeMount(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    mount_path: str = ""


class Capabilities(msgspec.Struct, gc=False):
    add: Sequence[str] | None = None
    drop: Sequence[str] | None = None


class SecurityContext(msgspec.Struct, rename="camel", gc=False):
    """`webhook.predict.pod_security.pod` has the other fields."""

    capabilities: Capabilities | None = None
    privileged: bool | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None


class PodSecurityContext(msgspec.Struct, rename="camel", gc=False):
    fs_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None


class ContainerPort(msgspec.Struct, rename="camel", gc=False):
    container_port: int | None = None
    host_port: int | None = None
    name: str | None = None
    protocol: str | None = None


class Probe(msgspec.Struct, rename="camel", gc=False):
    termination_grace_period_seconds: int | None = None


class Container(msgspec.Struct, rename="camel", dict=True):
    name: str = ""
    image: str | None = None
    command: Sequence[str] | None = None
    args: Sequence[str] | None = None
    env: Sequence[EnvVar] | None = None
    env_from: Sequence[EnvFrom] | None = None
    ports: Sequence[ContainerPort] | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    volume_mounts: Sequence[VolumeMount] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    security_context: SecurityContext | None = None

    def __post_init__(self) -> None:
        self.argv: Sequence[str] = [*(self.command or ()), *(self.args or ())]
        """Command and arguments of the job, without the image's defaults."""
        self.sourced: list[tuple[int, Any]] = [
            (index, variable) for index, variable in enumerate(self.env or ()) if variable.value_from is not None
        ]
        """(index, variable) of the variables with a `valueFrom`."""


class Named(msgspec.Struct, gc=False):
    name: str = ""


class Toleration(msgspec.Struct, gc=False):
    """The tolerated taints. The default operator is `Equal`; without an effect, every effect is tolerated."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeRequirement(msgspec.Struct, gc=False):
    key: str = ""
    operator: str = ""
    values: Sequence[str] | None = None


class NodeTerm(msgspec.Struct, rename="camel", gc=False):
    """Conditions that must all be met. A term without conditions selects no node."""

    match_expressions: Sequence[NodeRequirement] | None = None
    match_fields: Sequence[NodeRequirement] | None = None


class NodeTerms(msgspec.Struct, rename="camel", gc=False):
    node_selector_terms: Sequence[NodeTerm] | None = None


class NodeAffinity(msgspec.Struct, rename="camel", gc=False):
    """The required node affinity; preferences are not read."""

    required_during_scheduling_ignored_during_execution: NodeTerms | None = None


class PodLabels(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    match_labels: dict[str, str] | None = None
    match_expressions: Sequence[Presence] | None = None


class PodAffinityTerm(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Nodes count as close together if they have the same value of the label that `topologyKey` names."""

    topology_key: str = ""
    label_selector: PodLabels | None = None
    namespaces: Sequence[str] | None = None
    namespace_selector: Presence | None = None
    match_label_keys: Sequence[str] | None = None
    mismatch_label_keys: Sequence[str] | None = None


class WeightedPodAffinityTerm(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    pod_affinity_term: PodAffinityTerm | None = None


class PodAffinity(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    required_during_scheduling_ignored_during_execution: Sequence[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: Sequence[WeightedPodAffinityTerm] | None = None

    @property
    def terms(self) -> Iterator[PodAffinityTerm]:
        yield from self.required_during_scheduling_ignored_during_execution or ()
        for weighted in self.preferred_during_scheduling_ignored_during_execution or ():
            if weighted.pod_affinity_term is not None:
                yield weighted.pod_affinity_term


class Affinity(msgspec.Struct, rename="camel", gc=False):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class PodOS(msgspec.Struct, gc=False):
    name: str | None = None


class PodResourceClaim(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    containers: Sequence[Container] | None = None
    init_containers: Sequence[Container] | None = None
    overhead: Mapping[str, object] | None = None
    resources: ResourceRequirements | None = None
    resource_claims: Sequence[PodResourceClaim | None] | None = None
    volumes: Sequence[Volume] | None = None
    image_pull_secrets: Sequence[Named] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: Sequence[Toleration] | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    security_context: PodSecurityContext | None = None
    service_account_name: str | None = None
    service_account: str | None = None
    automount_service_account_token: bool | None = None
    restart_policy: str | None = None
    runtime_class_name: str | None = None
    scheduler_name: str | None = None
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    dns_policy: str | None = None
    host_network: bool | None = None
    host_ipc: bool | None = msgspec.field(default=None, name="hostIPC")
    topology_spread_constraints: Sequence[Presence | None] | None = None
    hostname: str | None = None
    set_hostname_as_fqdn: bool | None = msgspec.field(default=None, name="setHostnameAsFQDN")
    subdomain: str | None = None
    os: PodOS | None = None

    @property
    def for_windows(self) -> bool:
        by_name = self.os is not None and self.os.name == WINDOWS
        return by_name or (self.node_selector or {}).get(OS_LABEL) == WINDOWS


class TemplateMeta(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class PodTemplate(msgspec.Struct, dict=True):
    metadata: TemplateMeta | None = None
    spec: PodSpec | None = None

    def __post_init__(self) -> None:
        self.labels: dict[str, str] = (self.metadata and self.metadata.labels) or {}
        self.annotations: dict[str, str] = (self.metadata and self.metadata.annotations) or {}
        self.containers: Sequence[Container] = (self.spec and self.spec.containers) or []
        """The first is the MPI container."""
        self.init_containers: Sequence[Container] = (self.spec and self.spec.init_containers) or []
        self.each_container = [("containers", index, container) for index, container in enumerate(self.containers)]
        self.each_container += [("initContainers", index, each) for index, each in enumerate(self.init_containers)]
        """(field of the pod's spec, index, container)."""

    @property
    def node_selector(self) -> dict[str, str]:
        return (self.spec and self.spec.node_selector) or {}

    @property
    def node_terms(self) -> Sequence[NodeTerm]:
        """A node must meet at least one term of the required node affinity."""
        affinity = self.spec and self.spec.affinity and self.spec.affinity.node_affinity
        required = affinity and affinity.required_during_scheduling_ignored_during_execution
        return (required and required.node_selector_terms) or []

    def requires_node(self, key: str, value: str) -> bool:
        """Whether nodeSelector, or every term of the node affinity, requires a node with this label."""
        return self.node_selector.get(key) == value or self.affinity_requires(key, [value])

    def affinity_requires(self, key: str, values: Sequence[str]) -> bool:
        """Whether every term of the node affinity has the list `values`, in the same order, for the label `key`."""
        # A term without conditions selects no node.
        terms = [term for term in self.node_terms if term.match_expressions or term.match_fields]
        expected = (key, "In", list(values))
        return bool(terms) and all(
            any(
                (condition.key, condition.operator, condition.values) == expected
                for condition in term.match_expressions or ()
            )
            for term in terms
        )

    @property
    def user(self) -> int | None:
        """The user id of the first container; None if the image decides."""
        of_container = (self.containers[0].security_context if self.containers else None) or SecurityContext()
        of_pod = (self.spec.security_context if self.spec else None) or PodSecurityContext()
        return of_pod.run_as_user if of_container.run_as_user is None else of_container.run_as_user

    @cached_property
    def with_devices(self) -> list[tuple[str, int, Container]]:
        """Those of `each_container` that request an extended resource such as `nvidia.com/gpu`."""
        return [
            (field, index, container)
            for field, index, container in self.each_container
            if (resources := container.resources) is not None
            and ("/" in "".join(resources.limits or ()) or "/" in "".join(resources.requests or ()))
        ]
