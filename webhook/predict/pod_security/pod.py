"""The fields of a pod template that Pod Security and OpenShift's SCCs read.

`webhook.api.pod` is decoded for every request and lacks most of these fields. `webhook.predict.pod_template.model`
accepts only valid values. This module accepts any value of the right type.
"""

from collections.abc import Iterator, Mapping

import msgspec

from webhook.api import written
from webhook.api.mpijob import LAUNCHER, WORKER, replica_path
from webhook.api.pod import PodOS, Presence
from webhook.api.shape import ShapeError, decode_error


class Profile(msgspec.Struct, rename="camel", gc=False):
    type: str | None = None
    localhost_profile: str | None = None


class SELinuxOptions(msgspec.Struct, gc=False):
    level: str | None = None
    type: str | None = None
    user: str | None = None
    role: str | None = None


class WindowsOptions(msgspec.Struct, rename="camel", gc=False):
    host_process: bool | None = None


class SecurityContext(msgspec.Struct, rename="camel", gc=False):
    app_armor_profile: Profile | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: Profile | None = None
    windows_options: WindowsOptions | None = None


class Sysctl(msgspec.Struct, gc=False):
    name: str | None = None


class PodSecurityContext(SecurityContext, rename="camel", gc=False):
    fs_group: int | None = None
    supplemental_groups: list[int] | None = None
    sysctls: list[Sysctl] | None = None


class Capabilities(msgspec.Struct, gc=False):
    add: list[str] | None = None
    drop: list[str] | None = None


class ContainerSecurityContext(SecurityContext, rename="camel", gc=False):
    allow_privilege_escalation: bool | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None


class Port(msgspec.Struct, rename="camel", gc=False):
    container_port: int | None = None
    host_port: int | None = None


class Endpoint(msgspec.Struct, gc=False):
    """The target of a handler: the pod, unless `host` is set."""

    host: str | None = None


class Handler(msgspec.Struct, rename="camel", gc=False):
    http_get: Endpoint | None = None
    tcp_socket: Endpoint | None = None


class Lifecycle(msgspec.Struct, rename="camel", gc=False):
    post_start: Handler | None = None
    pre_stop: Handler | None = None


class Container(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    lifecycle: Lifecycle | None = None
    liveness_probe: Handler | None = None
    ports: list[Port] | None = None
    readiness_probe: Handler | None = None
    security_context: ContainerSecurityContext | None = None
    startup_probe: Handler | None = None


class HostPath(msgspec.Struct, gc=False):
    path: str | None = None


class Volume(msgspec.Struct, rename="camel", gc=False):
    """A volume. It may have any source of a current or former Kubernetes version."""

    name: str = ""
    config_map: Presence | None = None
    csi: Presence | None = None
    downward_api: Presence | None = msgspec.field(default=None, name="downwardAPI")
    empty_dir: Presence | None = None
    ephemeral: Presence | None = None
    image: Presence | None = None
    persistent_volume_claim: Presence | None = None
    projected: Presence | None = None
    secret: Presence | None = None

    host_path: HostPath | None = None
    gce_persistent_disk: Presence | None = None
    aws_elastic_block_store: Presence | None = None
    git_repo: Presence | None = None
    nfs: Presence | None = None
    iscsi: Presence | None = None
    glusterfs: Presence | None = None
    rbd: Presence | None = None
    flex_volume: Presence | None = None
    cinder: Presence | None = None
    cephfs: Presence | None = None
    flocker: Presence | None = None
    fc: Presence | None = None
    azure_file: Presence | None = None
    vsphere_volume: Presence | None = None
    quobyte: Presence | None = None
    azure_disk: Presence | None = None
    photon_persistent_disk: Presence | None = None
    portworx_volume: Presence | None = None
    scale_io: Presence | None = msgspec.field(default=None, name="scaleIO")
    storageos: Presence | None = None


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    host_ipc: bool | None = msgspec.field(default=None, name="hostIPC")
    host_network: bool | None = None
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    host_users: bool | None = None
    init_containers: list[Container] | None = None
    os: PodOS | None = None
    runtime_class_name: str | None = None
    security_context: PodSecurityContext | None = None
    service_account: str | None = None
    service_account_name: str | None = None
    volumes: list[Volume] | None = None


class Metadata(msgspec.Struct, gc=False):
    annotations: dict[str, str] | None = None


class PodTemplate(msgspec.Struct, gc=False):
    """A pod template, or a pod: both have metadata and spec."""

    metadata: Metadata | None = None
    spec: PodSpec | None = None

    @property
    def annotations(self) -> Mapping[str, str]:
        return (self.metadata and self.metadata.annotations) or {}


_decoder = msgspec.json.Decoder(PodTemplate)


def decode(data: bytes | msgspec.Raw) -> PodTemplate:
    """Raises ShapeError with the path of the first field with a wrong type."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise decode_error(error) from None


def convert(value: object) -> PodTemplate:
    """Like `decode`, but `value` is JSON that is already decoded."""
    try:
        return msgspec.convert(value, PodTemplate)
    except (msgspec.ValidationError, RecursionError) as error:
        raise decode_error(error) from None


def templates(document: bytes | msgspec.Raw) -> Iterator[tuple[str, str, PodTemplate]]:
    """(role, path, template) of the Launcher, then the Worker. Raises ShapeError with the path in the job.

    The operator's additions to a template do not change the result of a check (mpi-operator `newWorker` and
    `newLauncherPodTemplate` in `pkg/controller/mpi_job_controller.go`).
    """
    texts = written.templates(document)
    for role in (LAUNCHER, WORKER):
        if text := texts.get(role):
            path = f"{replica_path(role)}.template"
            try:
                yield role, path, decode(text)
            except ShapeError as error:
                raise ShapeError(f"{path}.{error.path}".rstrip("."), error.message) from None
