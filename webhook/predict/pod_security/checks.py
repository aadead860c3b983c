"""The checks, sorted by id like the results of Pod Security admission.

The documentation contains the docstrings of the checks. In these docstrings, `containers[*]` includes init and
ephemeral containers.
"""

from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from webhook.predict.pod_security.levels import NEWEST, Level, Version
from webhook.predict.pod_security.pod import (
    Capabilities,
    Container,
    Handler,
    PodTemplate,
    Profile,
    SecurityContext,
    SELinuxOptions,
    Volume,
)
from webhook.predict.pod_security.subject import Place, Subject, containers, fields, go_quoted, plural, quoted, setters


class Result(msgspec.Struct, frozen=True):
    """The violation of a check; `reason` and `detail` are Kubernetes' texts."""

    check: str
    reason: str
    detail: str
    paths: tuple[str, ...]
    """The paths, in the pod template, of fields that break the check or are missing."""


class Fault(NamedTuple):
    """A `Result` without the id of the check."""

    reason: str
    detail: str
    paths: tuple[str, ...]


Run = Callable[[Subject], Fault | None]


class Check(msgspec.Struct, frozen=True):
    """A check of a level."""

    id: str
    level: Level
    since: tuple[int, ...]
    """The minor version that introduced the check, then the versions that changed it."""
    run: Run
    overrides: tuple[str, ...] = ()
    """The baseline checks that this check replaces at the level `restricted`."""
    spares: Callable[[Subject], bool] | None = None
    """Returns True for a pod that passes without a check of its fields."""

    def revision(self, version: Version) -> int | None:
        """The minor version that last changed the check up to `version`; None if the check did not exist yet."""
        return max((minor for minor in self.since if minor <= version.minor), default=None)

    def evaluate(self, pod: Subject) -> Result | None:
        if self.spares is not None and self.spares(pod):
            return None
        fault = self.run(pod)
        return None if fault is None else Result(self.id, *fault)


REGISTRY: Final[dict[str, Check]] = {}


def _check(
    check: str,
    level: Level,
    *since: int,
    overrides: tuple[str, ...] = (),
    spares: Callable[[Subject], bool] | None = None,
) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        REGISTRY[check] = Check(check, level, since, run, overrides, spares)
        return run

    return register


def _windows(pod: Subject) -> bool:
    return pod.version.minor >= 25 and pod.for_windows


def _user_namespace(pod: Subject) -> bool:
    return pod.version.minor >= 35 and pod.in_user_namespace


def refusal(reason: str, bad: list[Place], fault: str, field: str, *, pod: bool = False) -> Fault | None:
    """None if nothing breaks the check.

    `bad` are the containers that break it. `pod` is True if the pod's own field breaks it. The detail is the names of
    the pod and the containers, followed by `fault`.
    """
    if not (bad or pod):
        return None
    return Fault(reason, f"{setters(pod, bad)} {fault}", fields(field, bad, pod=pod))


def evaluate(level: Level, version: Version, template: PodTemplate, *, newest: Version = NEWEST) -> list[Result]:
    """The violations of `level`, in Kubernetes' order.

    `newest` is the cluster's version. An API server replaces `latest` and versions above its own with its own version.
    """
    if level is Level.PRIVILEGED:
        return []
    version = min(version, newest, NEWEST)
    subject = Subject(template, version)
    results = (check.evaluate(subject) for check in checks(level, version).values())
    return [result for result in results if result is not None]


@cache
def checks(level: Level, version: Version) -> dict[str, Check]:
    """The checks of a level by id: first the checks of `baseline`, then the checks that `restricted` adds.

    `version` is at most NEWEST.
    """
    if level is Level.PRIVILEGED:
        return {}
    existing = [check for check in REGISTRY.values() if check.revision(version) is not None]
    added = {check.id: check for check in existing if check.level is level and level is not Level.BASELINE}
    overridden = {key for check in added.values() for key in check.overrides}
    baseline = {check.id: check for check in existing if check.level is Level.BASELINE and check.id not in overridden}
    return baseline | added


@_check("allowPrivilegeEscalation", Level.RESTRICTED, 8, 25, spares=_windows)
def _allow_privilege_escalation(pod: Subject) -> Fault | None:
    """No process gains more privileges than its parent, for example by a set-user-ID file.

    **Restricted fields:**
    - `spec.containers[*].securityContext.allowPrivilegeEscalation`

    **Allowed values:** `false`; from v1.25 anything in pods for Windows
    """
    field = "securityContext.allowPrivilegeEscalation"
    bad = [place for place in pod.containers if place.security.allow_privilege_escalation is not False]
    return refusal("allowPrivilegeEscalation != false", bad, f"must set {field}=false", field)


_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_UNCONFINED: Final = "Unconfined"


@_check("appArmorProfile", Level.BASELINE, 0)
def _app_armor_profile(pod: Subject) -> Fault | None:
    """The container runtime's AppArmor profile stays enabled.

    **Restricted fields:**
    - `spec.securityContext.appArmorProfile.type`
    - `spec.containers[*].securityContext.appArmorProfile.type`

    **Allowed values:** unset, `RuntimeDefault`, `Localhost`

    **Restricted fields:**
    - `metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]`

    **Allowed values:** unset, empty, `runtime/default`, `localhost/*`
    """
    bad = [place for place in pod.containers if not _is_confining(_app_armor(pod, place))]
    bad_pod = not _is_confining(_own_app_armor(pod.security))
    annotations = [key for key, value in pod.annotations.items() if _is_forbidden_app_armor(key, value)]
    if not (bad or bad_pod or annotations):
        return None
    types = {_app_armor(pod, place) or "" for place in bad}
    if bad_pod:
        types.add(_own_app_armor(pod.security) or "")
    values = sorted(types) + sorted(f"{key}={go_quoted(pod.annotations[key])}" for key in annotations)
    who = [setters(bad_pod, bad)] * (bad_pod or bool(bad))
    who += [plural("annotation", "annotations", annotations)] * bool(annotations)
    written = [place for place in bad if place.security.app_armor_profile is not None]
    return Fault(
        plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values),
        f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}",
        fields("securityContext.appArmorProfile.type", written, pod=bad_pod)
        + tuple(f"metadata.annotations[{key}]" for key in sorted(annotations)),
    )


def _app_armor(pod: Subject, place: Place) -> str | None:
    """The container's AppArmor profile; None if unset.

    If the field is unset and the pod has a different profile, the API server fills in the field from an annotation
    (`applyAppArmorVersionSkew` in k8s.io/kubernetes `pkg/registry/core/pod/strategy.go`).
    """
    own = _own_app_armor(place.security)
    if own is not None or not pod.annotations or pod.for_windows:
        return own
    unconfined = pod.annotations.get(_APP_ARMOR + place.name) == "unconfined"
    return _UNCONFINED if unconfined and _own_app_armor(pod.security) != _UNCONFINED else None


def _own_app_armor(context: SecurityContext) -> str | None:
    return None if context.app_armor_profile is None else context.app_armor_profile.type or ""


def _is_confining(profile: str | None) -> bool:
    return profile in (None, "RuntimeDefault", "Localhost")


def _is_forbidden_app_armor(key: str, value: str) -> bool:
    return key.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")


DEFAULT_CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
        "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip
RESTRICTED_CAPABILITIES: Final = frozenset({"NET_BIND_SERVICE"})


@_check("capabilities_baseline", Level.BASELINE, 0)
def _capabilities_baseline(pod: Subject) -> Fault | None:
    """Containers add only capabilities that container runtimes grant by default. NET_RAW is not allowed.

    **Restricted fields:**
    - `spec.containers[*].securityContext.capabilities.add`

    **Allowed values:** unset, `AUDIT_WRITE`, `CHOWN`, `DAC_OVERRIDE`, `FOWNER`, `FSETID`, `KILL`, `MKNOD`,
    `NET_BIND_SERVICE`, `SETFCAP`, `SETGID`, `SETPCAP`, `SETUID`, `SYS_CHROOT`
    """
    # Kubernetes compares the exact spelling: `CAP_KILL` is not a default.
    bad, added = _adding(pod, DEFAULT_CAPABILITIES)
    field = "securityContext.capabilities.add"
    return refusal("non-default capabilities", bad, f"must not include {added} in {field}", field)


@_check("capabilities_restricted", Level.RESTRICTED, 22, 25, overrides=("capabilities_baseline",), spares=_windows)
def _capabilities_restricted(pod: Subject) -> Fault | None:
    """All capabilities are dropped; only NET_BIND_SERVICE may be added back.

    **Restricted fields:**
    - `spec.containers[*].securityContext.capabilities.drop`

    **Allowed values:** any list with `ALL`; from v1.25 anything in pods for Windows

    **Restricted fields:**
    - `spec.containers[*].securityContext.capabilities.add`

    **Allowed values:** unset, `NET_BIND_SERVICE`; from v1.25 anything in pods for Windows
    """
    keeping = [place for place in pod.containers if "ALL" not in (_capabilities(place).drop or ())]
    adding, added = _adding(pod, RESTRICTED_CAPABILITIES)
    details = []
    if keeping:
        details.append(f'{containers(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        details.append(f"{containers(adding)} must not include {added} in securityContext.capabilities.add")
    if not details:
        return None
    paths = fields("securityContext.capabilities.drop", keeping) + fields("securityContext.capabilities.add", adding)
    return Fault("unrestricted capabilities", "; ".join(details), paths)


def _capabilities(place: Place) -> Capabilities:
    return place.security.capabilities or Capabilities()


def _adding(pod: Subject, allowed: frozenset[str]) -> tuple[list[Place], str]:
    """The containers that add capabilities outside `allowed`, and the names of these capabilities in quotes."""
    added = [(place, {*(_capabilities(place).add or ())} - allowed) for place in pod.containers]
    return [place for place, others in added if others], quoted(sorted(set().union(*(others for _, others in added))))


@_check("hostNamespaces", Level.BASELINE, 0)
def _host_namespaces(pod: Subject) -> Fault | None:
    """The pod does not share the host's network, processes or inter-process communication.

    **Restricted fields:**
    - `spec.hostNetwork`
    - `spec.hostPID`
    - `spec.hostIPC`

    **Allowed values:** unset, `false`
    """
    spec = pod.spec
    given = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
    shared = [name for name, value in given.items() if value]
    if not shared:
        return None
    detail = ", ".join(f"{name}=true" for name in shared)
    return Fault("host namespaces", detail, tuple(f"spec.{name}" for name in shared))


@_check("hostPathVolumes", Level.BASELINE, 0)
def _host_path_volumes(pod: Subject) -> Fault | None:
    """No volume mounts a directory of the host.

    **Restricted fields:**
    - `spec.volumes[*].hostPath`

    **Allowed values:** unset
    """
    volumes = pod.spec.volumes or ()
    bad = {index: volume.name for index, volume in enumerate(volumes) if volume.host_path is not None}
    if not bad:
        return None
    who = f"{plural('volume', 'volumes', bad)} {quoted(bad.values())}"
    return Fault("hostPath volumes", who, tuple(f"spec.volumes[{index}].hostPath" for index in bad))


@_check("hostPorts", Level.BASELINE, 0)
def _host_ports(pod: Subject) -> Fault | None:
    """No container takes a port of the host.

    **Restricted fields:**
    - `spec.containers[*].ports[*].hostPort`

    **Allowed values:** unset, `0`
    """
    bad, ports, paths = [], set(), []
    for place in pod.containers:
        numbers = {index: pod.host_port(port) for index, port in enumerate(place.container.ports or ())}
        if any(numbers.values()):
            bad.append(place)
            ports |= {str(number) for number in numbers.values() if number}
            paths += [f"{place.path}.ports[{index}].hostPort" for index, number in numbers.items() if number]
    if not bad:
        return None
    use = f"{plural('uses', 'use', bad)} {plural('hostPort', 'hostPorts', ports)}"
    return Fault("hostPort", f"{containers(bad)} {use} {', '.join(sorted(ports))}", tuple(paths))


def only_by_host_network(result: Result, template: PodTemplate) -> bool:
    """True if all host ports of the template result from `hostNetwork: true`."""
    if result.check != "hostPorts":
        return False
    return not any(port.host_port for place in Subject(template).containers for port in place.container.ports or ())


@_check("hostProbesAndHostLifecycle", Level.BASELINE, 34)
def _host_probes_and_host_lifecycle(pod: Subject) -> Fault | None:
    """Probes and lifecycle handlers connect only to the pod: the kubelet must not send requests to other hosts.

    **Restricted fields:**
    - `spec.containers[*].livenessProbe.httpGet.host`, and the same field of `readinessProbe` and `startupProbe`
    - `spec.containers[*].livenessProbe.tcpSocket.host`, and the same field of `readinessProbe` and `startupProbe`
    - `spec.containers[*].lifecycle.postStart.httpGet.host`, and the same field of `preStop`
    - `spec.containers[*].lifecycle.postStart.tcpSocket.host`, and the same field of `preStop`

    **Allowed values:** unset, empty
    """
    names, hosts, paths = set(), set(), []
    for place in pod.containers:
        for path, handler in _handlers(place.container):
            for kind, endpoint in (("httpGet", handler.http_get), ("tcpSocket", handler.tcp_socket)):
                if endpoint is not None and endpoint.host:
                    names.add(place.name)
                    hosts.add(endpoint.host)
                    paths.append(f"{place.path}.{path}.{kind}.host")
    if not paths:
        return None
    who = f"{plural('container', 'containers', names)} {quoted(sorted(names))} {plural('uses', 'use', names)}"
    noun = plural("probe or lifecycle host", "probe or lifecycle hosts", hosts)
    return Fault("probe or lifecycle host", f"{who} {noun} {quoted(sorted(hosts))}", tuple(paths))


def _handlers(container: Container) -> Iterator[tuple[str, Handler]]:
    lifecycle = container.lifecycle
    handlers = {
        "livenessProbe": container.liveness_probe,
        "readinessProbe": container.readiness_probe,
        "startupProbe": container.startup_probe,
        "lifecycle.postStart": lifecycle.post_start if lifecycle else None,
        "lifecycle.preStop": lifecycle.pre_stop if lifecycle else None,
    }
    return ((path, handler) for path, handler in handlers.items() if handler is not None)


@_check("privileged", Level.BASELINE, 0)
def _privileged(pod: Subject) -> Fault | None:
    """No container is privileged: a privileged container is hardly isolated from the host.

    **Restricted fields:**
    - `spec.containers[*].securityContext.privileged`

    **Allowed values:** unset, `false`
    """
    field = "securityContext.privileged"
    bad = [place for place in pod.containers if place.security.privileged]
    return refusal("privileged", bad, f"must not set {field}=true", field)


@_check("procMount", Level.BASELINE, 0, 35, spares=_user_namespace)
def _proc_mount(pod: Subject) -> Fault | None:
    """The container runtime masks paths in /proc, unless the pod has a user namespace.

    **Restricted fields:**
    - `spec.containers[*].securityContext.procMount`

    **Allowed values:** unset, `Default`; from v1.35 anything with `hostUsers: false`
    """
    field = "securityContext.procMount"
    bad = [place for place in pod.containers if place.security.proc_mount not in (None, "Default")]
    kinds = sorted({str(place.security.proc_mount) for place in bad})
    return refusal("procMount", bad, f"must not set {field} to {quoted(kinds)}", field)


@_check("procMount_restricted", Level.RESTRICTED, 35, overrides=("procMount",))
def _proc_mount_restricted(pod: Subject) -> Fault | None:
    """The container runtime masks paths in /proc, with or without a user namespace.

    **Restricted fields:**
    - `spec.containers[*].securityContext.procMount`

    **Allowed values:** unset, `Default`
    """
    return _proc_mount(pod)


_ALLOWED_VOLUMES: Final = (
    "config_map", "csi", "downward_api", "empty_dir", "ephemeral", "image", "persistent_volume_claim", "projected",
    "secret",
)  # fmt: skip
_allowed_sources = attrgetter(*_ALLOWED_VOLUMES)
# In Kubernetes' order: if an invalid volume has several sources, Kubernetes names the first.
_FORBIDDEN_VOLUMES: Final = tuple(
    (field.name, field.encode_name)
    for field in msgspec.structs.fields(Volume)
    if field.name not in ("name", *_ALLOWED_VOLUMES)
)


@_check("restrictedVolumes", Level.RESTRICTED, 0, overrides=("hostPathVolumes",))
def _restricted_volumes(pod: Subject) -> Fault | None:
    """Volumes come from the cluster's storage, its configuration or the pod itself, not from an in-tree driver.

    The API server turns a volume without a source into an `emptyDir`.

    **Restricted fields:**
    - every source of `spec.volumes[*]` except the allowed ones

    **Allowed values:** `configMap`, `csi`, `downwardAPI`, `emptyDir`, `ephemeral`, `image`, `persistentVolumeClaim`,
    `projected`, `secret`
    """
    volumes = pod.spec.volumes or []
    bad = {index: kind for index, volume in enumerate(volumes) if (kind := _forbidden_source(volume))}
    if not bad:
        return None
    kinds = sorted(set(bad.values()))
    who = f"{plural('volume', 'volumes', bad)} {quoted(volumes[index].name for index in bad)}"
    noun = plural("restricted volume type", "restricted volume types", kinds)
    detail = f"{who} {plural('uses', 'use', bad)} {noun} {quoted(kinds)}"
    return Fault("restricted volume types", detail, tuple(f"spec.volumes[{i}].{kind}" for i, kind in bad.items()))


def _forbidden_source(volume: Volume) -> str | None:
    if any(source is not None for source in _allowed_sources(volume)):
        return None
    return next((name for attribute, name in _FORBIDDEN_VOLUMES if getattr(volume, attribute) is not None), None)


@_check("runAsNonRoot", Level.RESTRICTED, 0, 35, spares=_user_namespace)
def _run_as_non_root(pod: Subject) -> Fault | None:
    """Containers must run as a user other than root, unless the pod has a user namespace.

    **Restricted fields:**
    - `spec.securityContext.runAsNonRoot`
    - `spec.containers[*].securityContext.runAsNonRoot`

    **Allowed values:** `true`; unset in a container if the pod sets `true`; from v1.35 anything with `hostUsers: false`
    """
    field, of_pod = "securityContext.runAsNonRoot", pod.security.run_as_non_root
    bad = [place for place in pod.containers if place.security.run_as_non_root is False]
    if bad or of_pod is False:
        return refusal("runAsNonRoot != true", bad, f"must not set {field}=false", field, pod=of_pod is False)
    unset = [] if of_pod else [place for place in pod.containers if place.security.run_as_non_root is None]
    if not unset:
        return None
    return Fault("runAsNonRoot != true", f"pod or {containers(unset)} must set {field}=true", fields(field, unset))


@_check("runAsUser", Level.RESTRICTED, 23, 35, spares=_user_namespace)
def _run_as_user(pod: Subject) -> Fault | None:
    """The user is not 0, unless the pod has a user namespace.

    **Restricted fields:**
    - `spec.securityContext.runAsUser`
    - `spec.containers[*].securityContext.runAsUser`

    **Allowed values:** unset, any number except `0`; from v1.35 anything with `hostUsers: false`
    """
    # A 0 in the pod is a violation even if every container overrides it.
    of_pod = pod.security.run_as_user == 0
    bad = [place for place in pod.containers if place.security.run_as_user == 0]
    return refusal("runAsUser=0", bad, "must not set runAsUser=0", "securityContext.runAsUser", pod=of_pod)


@_check("seLinuxOptions", Level.BASELINE, 0, 31)
def _se_linux_options(pod: Subject) -> Fault | None:
    """The SELinux type is a container type; the user and role are unset.

    **Restricted fields:**
    - `spec.securityContext.seLinuxOptions.type`
    - `spec.containers[*].securityContext.seLinuxOptions.type`

    **Allowed values:** unset, empty, `container_t`, `container_init_t`, `container_kvm_t`; from v1.31
    `container_engine_t`

    **Restricted fields:**
    - `spec.securityContext.seLinuxOptions.user`
    - `spec.containers[*].securityContext.seLinuxOptions.user`
    - `spec.securityContext.seLinuxOptions.role`
    - `spec.containers[*].securityContext.seLinuxOptions.role`

    **Allowed values:** unset, empty
    """
    allowed = {"container_t", "container_init_t", "container_kvm_t"}
    if pod.version.minor >= 31:
        allowed.add("container_engine_t")
    field = "securityContext.seLinuxOptions"
    contexts: list[tuple[Place | None, str, SELinuxOptions | None]]
    contexts = [(None, f"spec.{field}", pod.security.se_linux_options)]
    contexts += [(place, f"{place.path}.{field}", place.security.se_linux_options) for place in pod.containers]
    wrong = [
        (place, path, options, names)
        for place, path, options in contexts
        if options is not None and (names := _wrong_options(options, allowed))
    ]
    if not wrong:
        return None
    all_names = {name for *_, names in wrong for name in names}
    bad_types = sorted({str(options.type) for *_, options, names in wrong if "type" in names})
    faults = [f"{plural('type', 'types', bad_types)} {quoted(bad_types)}"] * bool(bad_types)
    faults += [f"{name} may not be set" for name in ("user", "role") if name in all_names]
    places = [place for place, *_ in wrong if place is not None]
    who = setters(len(places) < len(wrong), places)
    paths = tuple(f"{path}.{name}" for _, path, _, names in wrong for name in names)
    return Fault("seLinuxOptions", f"{who} set forbidden {field}: {'; '.join(faults)}", paths)


def _wrong_options(options: SELinuxOptions, allowed: set[str]) -> list[str]:
    bad = {"type": options.type and options.type not in allowed, "user": options.user, "role": options.role}
    return [name for name, is_bad in bad.items() if is_bad]


_SECCOMP: Final = "securityContext.seccompProfile.type"
_SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"


@_check("seccompProfile_baseline", Level.BASELINE, 0, 19)
def _seccomp_profile_baseline(pod: Subject) -> Fault | None:
    """Seccomp is not disabled: the profile is the container runtime's default, or is installed on the node.

    **Restricted fields (from v1.19):**
    - `spec.securityContext.seccompProfile.type`
    - `spec.containers[*].securityContext.seccompProfile.type`

    **Allowed values:** unset, `RuntimeDefault`, `Localhost`

    **Restricted fields (up to v1.18):**
    - `metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]`
    - `metadata.annotations[container.seccomp.security.alpha.kubernetes.io/*]`

    **Allowed values:** unset, `runtime/default`, `docker/default`, `localhost/*`
    """
    if pod.version.minor >= 19:
        return _forbidden_profiles(pod)
    # Annotations of containers that do not exist are ignored.
    names = {_SECCOMP_OF_POD, *(_SECCOMP_OF_CONTAINER + place.name for place in pod.containers)}
    bad = sorted(name for name in names if _is_forbidden_seccomp(pod.annotations.get(name)))
    if not bad:
        return None
    written = sorted(f"{name}={go_quoted(pod.annotations[name])}" for name in bad)
    detail = f"forbidden {plural('annotation', 'annotations', bad)} {', '.join(written)}"
    return Fault("seccompProfile", detail, tuple(f"metadata.annotations[{name}]" for name in bad))


@_check(
    "seccompProfile_restricted",
    Level.RESTRICTED,
    19,
    25,
    overrides=("seccompProfile_baseline",),
    spares=_windows,
)
def _seccomp_profile_restricted(pod: Subject) -> Fault | None:
    """A seccomp profile is set: the container runtime's default, or a profile that is installed on the node.

    **Restricted fields:**
    - `spec.securityContext.seccompProfile.type`
    - `spec.containers[*].securityContext.seccompProfile.type`

    **Allowed values:** `RuntimeDefault`, `Localhost`; unset in a container if the pod sets a profile; from v1.25
    anything in pods for Windows
    """
    if fault := _forbidden_profiles(pod):
        return fault
    if pod.security.seccomp_profile is not None:
        return None
    unset = [place for place in pod.containers if place.security.seccomp_profile is None]
    if not unset:
        return None
    detail = f'pod or {containers(unset)} must set {_SECCOMP} to "RuntimeDefault" or "Localhost"'
    return Fault("seccompProfile", detail, fields(_SECCOMP, unset))


def _forbidden_profiles(pod: Subject) -> Fault | None:
    of_pod = pod.security.seccomp_profile
    bad_pod = _is_forbidden(of_pod)
    bad = [place for place in pod.containers if _is_forbidden(place.security.seccomp_profile)]
    profiles = [of_pod] * bad_pod + [place.security.seccomp_profile for place in bad]
    types = sorted({profile.type or "" for profile in profiles if profile is not None})
    return refusal("seccompProfile", bad, f"must not set {_SECCOMP} to {quoted(types)}", _SECCOMP, pod=bad_pod)


def _is_forbidden(profile: Profile | None) -> bool:
    return profile is not None and profile.type not in ("RuntimeDefault", "Localhost")


def _is_forbidden_seccomp(value: str | None) -> bool:
    return value not in (None, "runtime/default", "docker/default") and not str(value).startswith("localhost/")


SAFE_SYSCTLS: Final = {
    0: (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ),
    27: ("net.ipv4.ip_local_reserved_ports",),
    29: (
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ),
    32: ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    37: ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"),
}
"""Safe sysctls, by the first minor version in which they are safe."""


@_check("sysctls", Level.BASELINE, *SAFE_SYSCTLS)
def _sysctls(pod: Subject) -> Fault | None:
    """The pod sets only kernel parameters that affect no other pod.

    **Restricted fields:**
    - `spec.securityContext.sysctls[*].name`

    **Allowed values:** `kernel.shm_rmid_forced`, `net.ipv4.ip_local_port_range`, `net.ipv4.tcp_syncookies`,
    `net.ipv4.ping_group_range`, `net.ipv4.ip_unprivileged_port_start`; from v1.27 `net.ipv4.ip_local_reserved_ports`;
    from v1.29 `net.ipv4.tcp_keepalive_time`, `net.ipv4.tcp_fin_timeout`, `net.ipv4.tcp_keepalive_intvl`,
    `net.ipv4.tcp_keepalive_probes`; from v1.32 `net.ipv4.tcp_rmem`, `net.ipv4.tcp_wmem`; from v1.37
    `net.ipv4.tcp_slow_start_after_idle`, `net.ipv4.tcp_notsent_lowat`
    """
    allowed = {name for since, names in SAFE_SYSCTLS.items() if since <= pod.version.minor for name in names}
    given = [(index, sysctl.name or "") for index, sysctl in enumerate(pod.security.sysctls or ())]
    bad = [(index, name) for index, name in given if name not in allowed]
    if not bad:
        return None
    paths = tuple(f"spec.securityContext.sysctls[{index}].name" for index, _ in bad)
    return Fault("forbidden sysctls", ", ".join(name for _, name in bad), paths)


@_check("windowsHostProcess", Level.BASELINE, 0)
def _windows_host_process(pod: Subject) -> Fault | None:
    """No pod for Windows runs as a host process.

    **Restricted fields:**
    - `spec.securityContext.windowsOptions.hostProcess`
    - `spec.containers[*].securityContext.windowsOptions.hostProcess`

    **Allowed values:** unset, `false`
    """
    field = "securityContext.windowsOptions.hostProcess"
    bad = [place for place in pod.containers if _is_host_process(place.security)]
    return refusal("hostProcess", bad, f"must not set {field}=true", field, pod=_is_host_process(pod.security))


def _is_host_process(context: SecurityContext) -> bool:
    return context.windows_options is not None and bool(context.windows_options.host_process)
