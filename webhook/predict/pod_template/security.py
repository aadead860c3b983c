"""Security contexts of pods and containers."""

from typing import Literal

import msgspec

from webhook.api.presence import Presence
from webhook.predict.pod_template.forms import NonEmpty, UserId

Profiles = Literal["Localhost", "RuntimeDefault", "Unconfined"]


class Profile(msgspec.Struct, rename="camel", gc=False):
    """A seccomp or AppArmor profile."""

    type: Profiles
    localhost_profile: str | None = None


class Capabilities(msgspec.Struct, gc=False):
    """Linux capabilities."""

    add: list[str] | None = None
    drop: list[str] | None = None


class SELinuxOptions(msgspec.Struct, gc=False):
    """The SELinux label."""

    user: str | None = None
    role: str | None = None
    type: str | None = None
    level: str | None = None


class Context(msgspec.Struct, rename="camel", gc=False):
    """What pods and containers can both set."""

    run_as_user: UserId | None = None
    run_as_group: UserId | None = None
    run_as_non_root: bool | None = None
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: Presence | None = None


class SecurityContext(Context, rename="camel", gc=False):
    """A container's own."""

    privileged: bool | None = None
    allow_privilege_escalation: bool | None = None
    read_only_root_filesystem: bool | None = None
    proc_mount: Literal["Default", "Unmasked"] | None = None
    capabilities: Capabilities | None = None


class Sysctl(msgspec.Struct, gc=False):
    """A kernel parameter."""

    name: NonEmpty
    value: str | None = None


class PodSecurityContext(Context, rename="camel", gc=False):
    """The pod's own."""

    fs_group: UserId | None = None
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = None
    supplemental_groups: list[UserId] | None = None
    supplemental_groups_policy: Literal["Merge", "Strict"] | None = None
    se_linux_change_policy: Literal["Recursive", "MountOption"] | None = None
    sysctls: list[Sysctl] | None = None
