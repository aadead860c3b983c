"""OpenShift's SecurityContextConstraints (SCC): the allowed security settings of pods.

https://github.com/openshift/api/blob/master/security/v1/types.go
"""

from typing import Literal

import msgspec

from webhook.cluster.resource import Wire, cluster_wide

API_GROUP = "security.openshift.io"
RANGE = "MustRunAsRange"
FIXED = "MustRunAs"
NOT_ROOT = "MustRunAsNonRoot"


class IdRange(msgspec.Struct, frozen=True):
    """Ids from `min` to `max`, both included."""

    min: int = 0
    max: int = 0


class Users(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """The user ids with which containers may run. A range without limits is the namespace's range."""

    type: str = ""
    uid: int | None = None
    uid_range_min: int | None = None
    uid_range_max: int | None = None


class Groups(msgspec.Struct, frozen=True, omit_defaults=True):
    """The allowed group ids. Without ranges, the namespace's ranges apply."""

    type: str = ""
    ranges: tuple[IdRange, ...] = ()


class SELinuxLabel(msgspec.Struct, frozen=True, omit_defaults=True):
    """An SELinux label. An empty level is the namespace's level."""

    level: str = ""
    role: str = ""
    type: str = ""
    user: str = ""


class SELinux(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """The allowed SELinux labels."""

    type: str = ""
    options: SELinuxLabel | None = msgspec.field(default=None, name="seLinuxOptions")


class SecurityContextConstraints(Wire, rename="camel", omit_defaults=True):
    """An SCC. This class is both the wire format and the record."""

    allow_host_ipc: bool = msgspec.field(default=False, name="allowHostIPC")
    allow_host_network: bool = False
    allow_host_pid: bool = msgspec.field(default=False, name="allowHostPID")
    allow_host_ports: bool = False
    allow_privilege_escalation: bool | None = None
    allow_privileged_container: bool = False
    allowed_capabilities: tuple[str, ...] | None = None
    allowed_unsafe_sysctls: tuple[str, ...] | None = None
    default_add_capabilities: tuple[str, ...] | None = None
    default_allow_privilege_escalation: bool | None = None
    forbidden_sysctls: tuple[str, ...] | None = None
    fs_group: Groups = Groups()
    groups: tuple[str, ...] | None = None
    priority: int | None = None
    read_only_root_filesystem: bool = False
    required_drop_capabilities: tuple[str, ...] | None = None
    run_as_user: Users = Users()
    se_linux_context: SELinux = SELinux()
    seccomp_profiles: tuple[str, ...] | None = None
    supplemental_groups: Groups = Groups()
    user_namespace_level: Literal["", "AllowHostLevel", "RequirePodLevel"] = ""
    users: tuple[str, ...] | None = None
    volumes: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return self.metadata.name


SECURITY_CONTEXT_CONSTRAINTS = cluster_wide(
    "securitycontextconstraints",
    "SecurityContextConstraints",
    f"{API_GROUP}/v1",
    wire=SecurityContextConstraints,
    record=lambda scc: scc,
)
