"""A pod template with every field whose value the API server validates.

The types stand apart from `webhook.api.pod`: those take what no API server has seen, these take what it admits, so that
one decode tells a good template from one with a fault. `reading` says what is wrong with a template that does not
decode. Fields that a feature gate may leave out unseen are not here.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from webhook.api.presence import Presence
from webhook.predict.pod_template.containers import Container, Resources
from webhook.predict.pod_template.forms import Amount, Int32, Int64, NonEmpty, Positive, Strings
from webhook.predict.pod_template.references import LocalName
from webhook.predict.pod_template.scheduling import Affinity, SpreadConstraint, Toleration
from webhook.predict.pod_template.security import PodSecurityContext
from webhook.predict.pod_template.volumes import Volume


class DnsOption(msgspec.Struct, gc=False):
    """An option of the resolver."""

    name: NonEmpty
    value: str | None = None


class DnsConfig(msgspec.Struct, gc=False):
    """How names are resolved."""

    nameservers: Annotated[list[NonEmpty], Meta(max_length=3)] | None = None
    searches: Annotated[list[NonEmpty], Meta(max_length=32)] | None = None
    options: list[DnsOption] | None = None


class HostAlias(msgspec.Struct, gc=False):
    """A line of /etc/hosts."""

    ip: NonEmpty
    hostnames: list[NonEmpty] | None = None


class ReadinessGate(msgspec.Struct, rename="camel", gc=False):
    """A condition without which the pod is not ready."""

    condition_type: NonEmpty


class SchedulingGate(msgspec.Struct, gc=False):
    """What keeps the pod from being scheduled."""

    name: NonEmpty


class ResourceClaim(msgspec.Struct, rename="camel", gc=False):
    """Devices (DRA): a claim, or a template of one."""

    name: NonEmpty
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class OperatingSystem(msgspec.Struct, gc=False):
    """What the pod is for."""

    name: Literal["linux", "windows"]


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    """The pod's spec; what the operator overwrites is left out."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Presence] | None = None
    volumes: list[Volume] | None = None
    active_deadline_seconds: Positive | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    dns_config: DnsConfig | None = None
    dns_policy: Literal["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"] | None = None
    enable_service_links: bool | None = None
    host_aliases: list[HostAlias] | None = None
    host_ipc: bool | None = msgspec.field(default=None, name="hostIPC")
    host_network: bool | None = None
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    host_users: bool | None = None
    image_pull_secrets: list[LocalName] | None = None
    node_name: str | None = None
    node_selector: Strings | None = None
    overhead: dict[str, Amount] | None = None
    os: OperatingSystem | None = None
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = None
    priority: Int32 | None = None
    readiness_gates: list[ReadinessGate] | None = None
    resource_claims: list[ResourceClaim] | None = None
    runtime_class_name: str | None = None
    service_account: str | None = None
    service_account_name: str | None = None
    resources: Resources | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    security_context: PodSecurityContext | None = None
    set_hostname_as_fqdn: bool | None = msgspec.field(default=None, name="setHostnameAsFQDN")
    share_process_namespace: bool | None = None
    termination_grace_period_seconds: Int64 | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None


class Metadata(msgspec.Struct, gc=False):
    """What the operator hands on of the metadata."""

    labels: Strings | None = None
    annotations: Strings | None = None


class Template(msgspec.Struct, gc=False):
    """A pod template."""

    metadata: Metadata | None = None
    spec: PodSpec | None = None
