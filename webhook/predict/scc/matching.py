"""The fields that OpenShift's admission sets in a pod for an SCC, and the values that the SCC still rejects.

https://github.com/openshift/apiserver-library-go/tree/master/pkg/securitycontextconstraints
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from webhook.cluster.resources.sccs import FIXED, NOT_ROOT, RANGE, SecurityContextConstraints, SELinuxLabel
from webhook.predict.pod_security.checks import SAFE_SYSCTLS
from webhook.predict.pod_security.pod import (
    Capabilities,
    Container,
    ContainerSecurityContext,
    PodSecurityContext,
    PodSpec,
    PodTemplate,
    Profile,
    SELinuxOptions,
    Volume,
)
from webhook.predict.pod_security.subject import Place, Subject

T = TypeVar("T")

_ANY: Final = "*"
_LOCALHOST: Final = "localhost/"
_PROFILES: Final = {"runtime/default": "RuntimeDefault", "docker/default": "RuntimeDefault", "unconfined": "Unconfined"}
_OF_PROFILES: Final = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}
_DEFAULT_PROFILES: Final = frozenset(("runtime/default", "docker/default"))
# OpenShift does not allow sysctls that became safe in Kubernetes 1.37 or later (`sysctl/mustmatchpatterns.go`).
_SAFE_SYSCTLS: Final = {name for since, names in SAFE_SYSCTLS.items() if since < 37 for name in names}
# Volume sources that have other names in an SCC than in a pod.
_VOLUMES: Final = {"cephfs": "cephFS", "storageos": "storageOS", "vsphereVolume": "vsphere"}
_SOURCES: Final = {field.name: field.encode_name for field in msgspec.structs.fields(Volume) if field.name != "name"}


class Rejection(NamedTuple):
    """A value that an SCC rejects. `path` is in the pod template; `detail` is OpenShift's message."""

    path: str
    value: object
    detail: str


def fill(scc: SecurityContextConstraints, template: PodTemplate) -> PodTemplate:
    """The template with the values that admission adds; `scc` already has the namespace's ranges."""
    spec = template.spec or PodSpec()
    pod = _filled_pod(scc, spec.security_context or PodSecurityContext())
    containers = {
        field: [_filled_container(scc, container, pod) for container in getattr(spec, field) or ()]
        for field in ("init_containers", "containers")
    }
    return replace(template, spec=replace(spec, security_context=pod, **containers))


def rejections(scc: SecurityContextConstraints, filled: PodTemplate) -> Iterator[Rejection]:
    """`filled` is a result of `fill`. Empty if the SCC accepts the template."""
    pod = Subject(filled)
    yield from _of_pod(scc, pod)
    yield from _of_volumes(scc, pod.spec.volumes or ())
    for place in pod.containers:
        yield from _of_container(scc, place, pod)


def _filled_pod(scc: SecurityContextConstraints, own: PodSecurityContext) -> PodSecurityContext:
    filled: dict[str, Any] = {}
    if own.fs_group is None and scc.fs_group.type == FIXED:
        filled["fs_group"] = scc.fs_group.ranges[0].min
    if own.supplemental_groups is None and scc.supplemental_groups.type == FIXED:
        filled["supplemental_groups"] = [scc.supplemental_groups.ranges[0].min]
    if own.se_linux_options is None and scc.se_linux_context.type == FIXED:
        label = scc.se_linux_context.options or SELinuxLabel()
        filled["se_linux_options"] = SELinuxOptions(**{key: value or None for key, value in _fields(label).items()})
    profiles = [profile for profile in scc.seccomp_profiles or () if profile != _ANY]
    if own.seccomp_profile is None and profiles:
        local = profiles[0].removeprefix(_LOCALHOST)
        profile = Profile("Localhost", local) if local != profiles[0] else Profile(_PROFILES.get(local, local))
        filled["seccomp_profile"] = profile
    return replace(own, **filled)


def _filled_container(scc: SecurityContextConstraints, container: Container, pod: PodSecurityContext) -> Container:
    own = container.security_context or ContainerSecurityContext()
    filled: dict[str, Any] = {}
    users, user = scc.run_as_user, _effective(own.run_as_user, pod.run_as_user)
    if user is None and users.type in {RANGE, FIXED}:
        user = filled["run_as_user"] = users.uid_range_min if users.type == RANGE else users.uid
    if _effective(own.run_as_non_root, pod.run_as_non_root) is None and (
        user if user is not None else users.type == NOT_ROOT
    ):
        filled["run_as_non_root"] = True
    capabilities = own.capabilities or Capabilities()
    add, drop = {*(capabilities.add or ())}, {*(capabilities.drop or ())}
    more = {*(scc.default_add_capabilities or ())} - drop - add, {*(scc.required_drop_capabilities or ())} - drop
    if any(more):
        filled["capabilities"] = Capabilities(sorted(add | more[0]) or None, sorted(drop | more[1]) or None)
        add |= more[0]
    if scc.read_only_root_filesystem and own.read_only_root_filesystem is None:
        filled["read_only_root_filesystem"] = True
    if own.allow_privilege_escalation is None:
        escalates = own.privileged or "CAP_SYS_ADMIN" in add
        if scc.default_allow_privilege_escalation is not None and not escalates:
            filled["allow_privilege_escalation"] = scc.default_allow_privilege_escalation
        elif scc.allow_privilege_escalation is False:
            filled["allow_privilege_escalation"] = False
    return replace(container, security_context=replace(own, **filled))


def _of_pod(scc: SecurityContextConstraints, pod: Subject) -> Iterator[Rejection]:
    spec, security = pod.spec, pod.security
    for field, groups, own in (
        ("fsGroup", scc.fs_group, [] if security.fs_group is None else [security.fs_group]),
        ("supplementalGroups", scc.supplemental_groups, security.supplemental_groups or []),
    ):
        path = f"spec.securityContext.{field}"
        if groups.type == FIXED and not own:
            yield Rejection(path, own, "unable to validate empty groups against required ranges")
        for group in own if groups.type == FIXED else ():
            if not any(allowed.min <= group <= allowed.max for allowed in groups.ranges):
                yield Rejection(path, group, f"{group} is not an allowed group")
    yield from _of_profile(scc, "spec.securityContext", security.seccomp_profile)
    yield from _of_label(scc, "spec.securityContext", security.se_linux_options)
    for used, may_use, field, detail in (
        (spec.host_network, scc.allow_host_network, "hostNetwork", "Host network is not allowed to be used"),
        (spec.host_pid, scc.allow_host_pid, "hostPID", "Host PID is not allowed to be used"),
        (spec.host_ipc, scc.allow_host_ipc, "hostIPC", "Host IPC is not allowed to be used"),
    ):
        if used and not may_use:
            yield Rejection(f"spec.{field}", True, detail)
    if scc.user_namespace_level == "RequirePodLevel" and spec.host_users is not False:
        yield Rejection("spec.hostUsers", spec.host_users, "Host Users must be set to false")
    for index, sysctl in enumerate(security.sysctls or ()):
        path, name = f"spec.securityContext.sysctls[{index}].name", sysctl.name or ""
        if _matches(name, scc.forbidden_sysctls):
            yield Rejection(path, name, f'sysctl "{name}" is not allowed')
        elif name not in _SAFE_SYSCTLS and not _matches(name, scc.allowed_unsafe_sysctls):
            yield Rejection(path, name, f'unsafe sysctl "{name}" is not allowed')


def _of_volumes(scc: SecurityContextConstraints, volumes: Iterable[Volume]) -> Iterator[Rejection]:
    allowed = {*(scc.volumes or ())}
    if "secret" in allowed:  # OpenShift then also allows projected volumes that contain only tokens
        allowed.add("projected")
    for index, volume in enumerate(volumes):
        source = next((field for name, field in _SOURCES.items() if getattr(volume, name) is not None), "emptyDir")
        kind = _VOLUMES.get(source, source)
        if not allowed & {kind, _ANY}:
            yield Rejection(f"spec.volumes[{index}].{source}", kind, f"{kind} volumes are not allowed to be used")


def _of_container(scc: SecurityContextConstraints, place: Place, pod: Subject) -> Iterator[Rejection]:
    own, path = place.security, f"{place.path}.securityContext"
    yield from _of_user(scc, path, own, pod.security)
    if own.se_linux_options is not None:
        yield from _of_label(scc, path, own.se_linux_options)
    if own.seccomp_profile is not None:
        yield from _of_profile(scc, path, own.seccomp_profile)
    if own.privileged and not scc.allow_privileged_container:
        yield Rejection(f"{path}.privileged", True, "Privileged containers are not allowed")
    yield from _of_capabilities(scc, path, own.capabilities or Capabilities())
    for index, port in enumerate(place.container.ports or ()):
        if (host_port := pod.host_port(port)) and not scc.allow_host_ports:
            detail = "Host ports are not allowed to be used"
            yield Rejection(f"{place.path}.ports[{index}].hostPort", host_port, detail)
    if scc.read_only_root_filesystem and not own.read_only_root_filesystem:
        yield Rejection(f"{path}.readOnlyRootFilesystem", False, "ReadOnlyRootFilesystem must be set to true")
    if scc.allow_privilege_escalation is False and own.allow_privilege_escalation is not False:
        detail = "Allowing privilege escalation for containers is not allowed"
        yield Rejection(f"{path}.allowPrivilegeEscalation", own.allow_privilege_escalation, detail)


def _of_user(
    scc: SecurityContextConstraints, path: str, own: ContainerSecurityContext, pod: PodSecurityContext
) -> Iterator[Rejection]:
    users, user = scc.run_as_user, _effective(own.run_as_user, pod.run_as_user)
    if users.type == NOT_ROOT:
        if _effective(own.run_as_non_root, pod.run_as_non_root) is False:
            yield Rejection(f"{path}.runAsNonRoot", False, "must be true")
        elif user == 0:
            yield Rejection(f"{path}.runAsUser", user, "running with the root UID is forbidden")
    elif users.type == FIXED and user != users.uid:
        yield Rejection(f"{path}.runAsUser", user, f"must be: {users.uid}")
    elif users.type == RANGE:
        least, most = users.uid_range_min or 0, users.uid_range_max or 0
        if user is None or not least <= user <= most:
            yield Rejection(f"{path}.runAsUser", user, f"must be in the ranges: [{least}, {most}]")


def _of_label(scc: SecurityContextConstraints, path: str, own: SELinuxOptions | None) -> Iterator[Rejection]:
    if scc.se_linux_context.type != FIXED:
        return
    label = _fields(own or SELinuxOptions())
    for field, required in _fields(scc.se_linux_context.options or SELinuxLabel()).items():
        value = label[field]
        if value != required and not (field == "level" and _level(value) == _level(required)):
            yield Rejection(f"{path}.seLinuxOptions.{field}", value, f"must be {required}")


def _of_profile(scc: SecurityContextConstraints, path: str, own: Profile | None) -> Iterator[Rejection]:
    profile = "" if own is None else _OF_PROFILES.get(own.type or "", "")
    if own is not None and own.type == "Localhost" and own.localhost_profile is not None:
        profile = f"{_LOCALHOST}{own.localhost_profile}"
    allowed, path = scc.seccomp_profiles or (), f"{path}.seccompProfile.type"
    if not allowed:
        if profile:
            yield Rejection(path, profile, "seccomp may not be set")
        return
    named = [name for name in allowed if name != _ANY]
    if _ANY in allowed or profile in named or (profile in _DEFAULT_PROFILES and _DEFAULT_PROFILES.intersection(named)):
        return
    detail = f"{profile} is not an allowed seccomp profile. Valid values are [{' '.join(named)}]"
    yield Rejection(path, profile, detail)


def _of_capabilities(scc: SecurityContextConstraints, path: str, own: Capabilities) -> Iterator[Rejection]:
    allowed, dropped = {*(scc.allowed_capabilities or ())}, own.drop or ()
    if _ANY in allowed:
        return
    for name in own.add or ():
        if name not in allowed and name not in (scc.default_add_capabilities or ()):
            yield Rejection(f"{path}.capabilities.add", name, "capability may not be added")
    for name in scc.required_drop_capabilities or ():
        if name not in dropped:
            detail = f"{name} is required to be dropped but was not found"
            yield Rejection(f"{path}.capabilities.drop", dropped, detail)


def _effective(own: T | None, pod: T | None) -> T | None:
    return pod if own is None else own


def _fields(label: SELinuxLabel | SELinuxOptions) -> dict[str, str]:
    return {field: getattr(label, field) or "" for field in ("level", "role", "type", "user")}


def _level(level: str) -> tuple[str, tuple[str, ...]]:
    """(sensitivity, sorted categories) of an SELinux level."""
    sensitivity, _, categories = level.partition(":")
    return sensitivity, tuple(sorted(categories.split(",")))


def _matches(name: str, patterns: Iterable[str] | None) -> bool:
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith(_ANY) else name == pattern for pattern in patterns or ()
    )
