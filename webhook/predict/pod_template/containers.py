"""Containers of a pod template, as far as the API server validates them."""

from typing import Literal

import msgspec

from webhook.predict.pod_template.forms import (
    Amount,
    HostPort,
    NonEmpty,
    PortNumber,
    PullPolicy,
)
from webhook.predict.pod_template.handlers import Lifecycle, Probe, ProbeOfLife, ReadinessProbe
from webhook.predict.pod_template.references import FieldRef, FileRef, KeyRef, ResourceFieldRef, SourceRef
from webhook.predict.pod_template.security import SecurityContext


class Port(msgspec.Struct, rename="camel", gc=False):
    """A port on which a container listens."""

    container_port: PortNumber
    name: str | None = None
    protocol: Literal["", "TCP", "UDP", "SCTP"] | None = None
    host_port: HostPort | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")


class ValueFrom(msgspec.Struct, rename="camel", gc=False):
    """Where the value of a variable comes from: one of these."""

    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None
    file_key_ref: FileRef | None = None


class EnvVar(msgspec.Struct, rename="camel", gc=False):
    """An environment variable."""

    name: NonEmpty
    value: str | None = None
    value_from: ValueFrom | None = None


class EnvFrom(msgspec.Struct, rename="camel", gc=False):
    """Variables that come all at once, from one of these."""

    prefix: str | None = None
    config_map_ref: SourceRef | None = None
    secret_ref: SourceRef | None = None


class VolumeMount(msgspec.Struct, rename="camel", gc=False):
    """Where a volume appears in the container."""

    name: NonEmpty
    mount_path: NonEmpty
    sub_path: str | None = None
    sub_path_expr: str | None = None
    read_only: bool | None = None
    mount_propagation: Literal["None", "HostToContainer", "Bidirectional"] | None = None
    recursive_read_only: Literal["Disabled", "IfPossible", "Enabled"] | None = None


class VolumeDevice(msgspec.Struct, rename="camel", gc=False):
    """A volume as a block device."""

    name: NonEmpty
    device_path: NonEmpty


class ClaimUse(msgspec.Struct, gc=False):
    """A claim of the pod (DRA) that the container uses."""

    name: NonEmpty
    request: str | None = None


class Resources(msgspec.Struct, gc=False):
    """Amounts by resource name."""

    requests: dict[str, Amount] | None = None
    limits: dict[str, Amount] | None = None
    claims: list[ClaimUse] | None = None


class ResizePolicy(msgspec.Struct, rename="camel", gc=False):
    """What becomes of the container when a resource changes."""

    resource_name: Literal["cpu", "memory"]
    restart_policy: Literal["NotRequired", "RestartContainer"]


class Container(msgspec.Struct, rename="camel", gc=False):
    """A container or init container; what `webhook.api.pod` has read and the API server takes as it is, is left out."""

    name: NonEmpty
    image: str | None = None
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
    def probes(self) -> tuple[tuple[str, Probe | None], ...]:
        """Each probe by the name of its field."""
        return (
            ("livenessProbe", self.liveness_probe),
            ("readinessProbe", self.readiness_probe),
            ("startupProbe", self.startup_probe),
        )
