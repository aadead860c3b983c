"""The pod template inside a replica spec: only the fields that are read.

Every field may be absent or null: mutating webhooks see objects before schema validation, and files on disk
were never validated at all.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from webhook.api.presence import Presence
from webhook.api.requirements import ResourceFieldRef, ResourceRequirements
from webhook.api.volume import ConfigMapSource, Volume

WINDOWS: Final = "windows"
OS_LABEL: Final = "kubernetes.io/os"


class ValueFrom(msgspec.Struct, rename="camel", gc=False):
    """Where the value of a variable comes from."""

    config_map_key_ref: ConfigMapSource | None = None
    resource_field_ref: ResourceFieldRef | None = None


class EnvFrom(msgspec.Struct, rename="camel", gc=False):
    """Variables that come all at once."""

    config_map_ref: ConfigMapSource | None = None


class EnvVar(msgspec.Struct, rename="camel", gc=False):
    """An environment variable; `value` is None when it comes from elsewhere."""

    name: str
    value: str | None = None
    value_from: ValueFrom | None = None


class VolumeMount(msgspec.Struct, rename="camel", gc=False):
    """Where a volume appears in the container."""

    name: str = ""
    mount_path: str = ""


class Capabilities(msgspec.Struct, gc=False):
    """Linux capabilities."""

    add: list[str] | None = None
    drop: list[str] | None = None


class SecurityContext(msgspec.Struct, rename="camel", gc=False):
    """Who a container runs as; `webhook.predict.pod_security.pod` has what Pod Security reads."""

    capabilities: Capabilities | None = None
    privileged: bool | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None


class PodSecurityContext(msgspec.Struct, rename="camel", gc=False):
    """What holds for containers that say nothing, and the group that owns the volumes."""

    fs_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None


class ContainerPort(msgspec.Struct, rename="camel", gc=False):
    """A port on which a container listens."""

    container_port: int | None = None
    name: str | None = None
    protocol: str | None = None


class Probe(msgspec.Struct, rename="camel", gc=False):
    """A liveness or startup probe."""

    termination_grace_period_seconds: int | None = None


class Container(msgspec.Struct, rename="camel", gc=False):
    """A container or init container."""

    name: str = ""
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    env_from: list[EnvFrom] | None = None
    ports: list[ContainerPort] | None = None
    liveness_probe: Probe | None = None
    startup_probe: Probe | None = None
    volume_mounts: list[VolumeMount] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    security_context: SecurityContext | None = None

    @property
    def argv(self) -> list[str]:
        """What it runs, as far as its image does not say."""
        return [*(self.command or ()), *(self.args or ())]


class Named(msgspec.Struct, gc=False):
    """Anything that is referred to by its name: pull secrets."""

    name: str = ""


class Toleration(msgspec.Struct, gc=False):
    """Taints that the pod bears; without an operator it is `Equal`, without an effect every one."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class NodeRequirement(msgspec.Struct, gc=False):
    """One condition on one label of a node."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeTerm(msgspec.Struct, rename="camel", gc=False):
    """Conditions that hold together; a term without any selects no node."""

    match_expressions: list[NodeRequirement] | None = None
    match_fields: list[NodeRequirement] | None = None


class NodeTerms(msgspec.Struct, rename="camel", gc=False):
    """Terms of which one has to hold."""

    node_selector_terms: list[NodeTerm] | None = None


class NodeAffinity(msgspec.Struct, rename="camel", gc=False):
    """Where pods must run; what they only prefer is not read."""

    required_during_scheduling_ignored_during_execution: NodeTerms | None = None


class PodLabels(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Labels by which pods are found; expressions are not read."""

    match_labels: dict[str, str] | None = None


class PodAffinityTerm(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Pods to be near to or far from: which, of which namespaces, and the label of nodes that says what near is."""

    topology_key: str = ""
    label_selector: PodLabels | None = None
    namespaces: list[str] | None = None
    namespace_selector: Presence | None = None


class WeightedPodAffinityTerm(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Pods that it would be better to be near to, or far from."""

    pod_affinity_term: PodAffinityTerm | None = None


class PodAffinity(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Pods to be near to, or far from."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = None

    @property
    def terms(self) -> Iterator[PodAffinityTerm]:
        """What is required, then what is preferred."""
        yield from self.required_during_scheduling_ignored_during_execution or ()
        for weighted in self.preferred_during_scheduling_ignored_during_execution or ():
            if weighted.pod_affinity_term is not None:
                yield weighted.pod_affinity_term


class Affinity(msgspec.Struct, rename="camel", gc=False):
    """Affinity to nodes, and to other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class PodOS(msgspec.Struct, gc=False):
    """The operating system of the pod's containers."""

    name: str | None = None


class PodResourceClaim(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Devices for the pod: by a claim that exists, or by one that is made for it of a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    """The pod's spec."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: dict[str, object] | None = None
    resources: ResourceRequirements | None = None
    resource_claims: list[PodResourceClaim | None] | None = None
    volumes: list[Volume] | None = None
    image_pull_secrets: list[Named] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
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
    host_network: bool | None = None
    host_ipc: bool | None = msgspec.field(default=None, name="hostIPC")
    topology_spread_constraints: list[Presence | None] | None = None
    hostname: str | None = None
    subdomain: str | None = None
    os: PodOS | None = None

    @property
    def for_windows(self) -> bool:
        """Whether the pod says that it runs on Windows."""
        by_name = self.os is not None and self.os.name == WINDOWS
        return by_name or (self.node_selector or {}).get(OS_LABEL) == WINDOWS


class TemplateMeta(msgspec.Struct, gc=False):
    """The metadata that reaches the pods."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class PodTemplate(msgspec.Struct, gc=False):
    """A pod template; `metadata` and `spec` may be missing."""

    metadata: TemplateMeta | None = None
    spec: PodSpec | None = None

    @property
    def labels(self) -> dict[str, str]:
        """Labels, empty when there are none."""
        return (self.metadata and self.metadata.labels) or {}

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations, empty when there are none."""
        return (self.metadata and self.metadata.annotations) or {}

    @property
    def node_selector(self) -> dict[str, str]:
        """Labels that a node must have, empty when there are none."""
        return (self.spec and self.spec.node_selector) or {}

    @property
    def node_terms(self) -> list[NodeTerm]:
        """Terms of the required node affinity, of which one has to hold; empty when there are none."""
        affinity = self.spec and self.spec.affinity and self.spec.affinity.node_affinity
        required = affinity and affinity.required_during_scheduling_ignored_during_execution
        return (required and required.node_selector_terms) or []

    def requires_node(self, key: str, value: str) -> bool:
        """Whether the pods go only to nodes with this label, by nodeSelector or by every term of the node affinity."""
        if self.node_selector.get(key) == value:
            return True
        # A term without conditions selects no node.
        terms = [term for term in self.node_terms if term.match_expressions or term.match_fields]
        return bool(terms) and all(
            any((one.key, one.operator, one.values) == (key, "In", [value]) for one in term.match_expressions or ())
            for term in terms
        )

    @property
    def containers(self) -> list[Container]:
        """Containers in order: the first is the MPI container."""
        return (self.spec and self.spec.containers) or []

    @property
    def user(self) -> int | None:
        """Who the first container runs as; None where the image decides."""
        own = (self.containers[0].security_context if self.containers else None) or SecurityContext()
        of_pod = (self.spec.security_context if self.spec else None) or PodSecurityContext()
        return of_pod.run_as_user if own.run_as_user is None else own.run_as_user

    @property
    def init_containers(self) -> list[Container]:
        """Init containers in order."""
        return (self.spec and self.spec.init_containers) or []

    def each_container(self, path: str) -> list[tuple[str, Container]]:
        """(path, container) of every container, then of every init container; `path` is where the template stands."""
        found: list[tuple[str, Container]] = []
        if (spec := self.spec) is None:
            return found
        for index, container in enumerate(spec.containers or ()):
            found.append((f"{path}.spec.containers[{index}]", container))
        for index, container in enumerate(spec.init_containers or ()):
            found.append((f"{path}.spec.initContainers[{index}]", container))
        return found
