"""The API server's checks of a pod's containers, including probes, handlers and security contexts."""

import json
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from webhook.api import names, sshd
from webhook.api.crd_schema import such_as
from webhook.api.pod import SHARED_MEMORY, PodTemplate
from webhook.predict.limits import MAX_MOUNT_SUGGESTIONS
from webhook.predict.pod_template import model, texts
from webhook.predict.pod_template.check_volumes import check_field, check_resource_field
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.resources import check_resources

_FIELDS = frozenset(
    {
        *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.host"),
        *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
    }
)
_MODES: Final = {":ro": ", and readOnly: true", ":rw": ""}
"""Modes that Docker reads at the end of a mount path, each with the end of the fix."""
_WAYS: Final = len(model.ValueFrom.__struct_fields__)
_SOURCES = "fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef"


class Role(msgspec.Struct, frozen=True, gc=False):
    """A pod template of the job. `path` is the path of the template."""

    name: str
    path: str
    template: PodTemplate
    volumes: tuple[str, ...]
    """The names of the volumes that the operator adds."""
    never_restarts: bool
    all_templates: Sequence[PodTemplate] = ()
    """The pod templates of all roles."""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """Facts about a pod that the checks of its containers need."""

    role: Role
    spec: model.PodSpec
    volumes: Mapping[str, model.Volume]
    claims: Set[str]
    """The names of the pod's resource claims."""
    without_ranges: bool | None
    """True if no LimitRange sets default resources; None if this is unknown."""


def check_container(container: model.Container, path: str, pod: Pod, faults: Faults) -> None:
    if texts.label(container.name):
        texts.check(faults, f"{path}.name", container.name, texts.label)
    if (folder := container.working_dir) and not folder.startswith("/") and ":" not in folder:
        fault, fix = f'"{shown(folder)}" is not absolute, so the container never starts', "Begin it with /."
        faults.add(f"{path}.workingDir", fault, fix, advisory=True)
    if container.ports:
        _ports(container.ports, path, faults)
    if container.env:
        _env(container, path, pod, faults)
    if container.env_from:
        _env_from(container.env_from, f"{path}.envFrom", faults)
    if container.volume_mounts:
        _mounts(container, container.volume_mounts, path, pod, faults)
    if container.volume_devices:
        _devices(container.volume_devices, f"{path}.volumeDevices", pod, faults)
    if container.resources is not None:
        check_resources(container.resources, f"{path}.resources", faults, without_ranges=pod.without_ranges)
        if container.resources.claims:
            _claims(container.resources.claims, f"{path}.resources.claims", pod, faults)
    if container.resize_policy:
        _resize(container.resize_policy, f"{path}.resizePolicy", pod, faults)
    if container.security_context is not None:
        check_security(container.security_context, f"{path}.securityContext", pod, faults)


def _ports(ports: list[model.Port], path: str, faults: Faults) -> None:
    used: set[str] = set()
    for index, port in enumerate(ports):
        if port.name:
            where = f"{path}.ports[{index}].name"
            if problem := texts.port_name(port.name):
                texts.note(faults, where, port.name, problem)
            elif port.name in used:
                faults.add(where, f'there is another port "{port.name}"', f"Write {port.name[:13]}-2.")
            used.add(port.name)


def _env(container: model.Container, path: str, pod: Pod, faults: Faults) -> None:
    env = container.env or []
    if not texts.variables([variable.name for variable in env]):
        for index, variable in enumerate(env):
            texts.check(faults, f"{path}.env[{index}].name", variable.name, texts.variable, texts.LETTERS)
    for index, variable in container.sourced:
        _value_from(variable, variable.value_from, f"{path}.env[{index}].valueFrom", pod, faults)


def _value_from(variable: model.EnvVar, source: model.ValueFrom, where: str, pod: Pod, faults: Faults) -> None:
    number = _WAYS - astuple(source).count(None)
    if not number:
        faults.add(where, "names no source", f"Set one of {_SOURCES}, or value instead of it.", Kind.REQUIRED)
    elif variable.value:
        faults.add(where, "does not go with value", "Remove one of the two.", Kind.FORBIDDEN)
    elif number > 1:
        faults.add(where, f"names {number} sources, but only one is allowed", "Keep one of them.", Kind.FORBIDDEN)
    if source.field_ref is not None:
        check_field(source.field_ref, f"{where}.fieldRef", _FIELDS, faults)
    if source.resource_field_ref is not None:
        check_resource_field(source.resource_field_ref, f"{where}.resourceFieldRef", faults)
    if source.config_map_key_ref is not None:
        _key(source.config_map_key_ref, f"{where}.configMapKeyRef", faults)
    if source.secret_key_ref is not None:
        _key(source.secret_key_ref, f"{where}.secretKeyRef", faults)
    if source.file_key_ref is not None:
        _file(source.file_key_ref.volume_name, f"{where}.fileKeyRef", pod, faults)


def _file(name: str | None, path: str, pod: Pod, faults: Faults) -> None:
    if not name:
        return
    volume = pod.volumes.get(name)
    if volume is None:
        fix = "Add an emptyDir under volumes, or correct the name."
        faults.add(f"{path}.volumeName", f'there is no volume "{shown(name)}"', fix)
    elif volume.empty_dir is None and any(getattr(volume, field) is not None for field, _ in model.SOURCES):
        faults.add(f"{path}.volumeName", f'volume "{shown(name)}" is not an emptyDir', "Name an emptyDir.")


def _key(reference: model.KeyRef, path: str, faults: Faults) -> None:
    texts.check(faults, f"{path}.name", reference.name, texts.subdomain)
    texts.check(faults, f"{path}.key", reference.key, texts.config_key, texts.LETTERS)


def _env_from(sources: list[model.EnvFrom], path: str, faults: Faults) -> None:
    for index, source in enumerate(sources):
        where = f"{path}[{index}]"
        texts.check(faults, f"{where}.prefix", source.prefix, texts.variable, texts.LETTERS)
        references = {"configMapRef": source.config_map_ref, "secretRef": source.secret_ref}
        given = {field: reference for field, reference in references.items() if reference is not None}
        if not given:
            faults.add(where, "names no source", "Set configMapRef or secretRef.", Kind.REQUIRED)
        elif len(given) > 1:
            faults.add(where, "names two sources, but only one is allowed", "Write two items.", Kind.FORBIDDEN)
        for field, reference in given.items():
            _source(reference, f"{where}.{field}", faults)


def _source(reference: model.SourceRef, path: str, faults: Faults) -> None:
    # The API server accepts a final "-", because the name may be the prefix of a generated name.
    name = reference.name.removesuffix("-") if len(reference.name) > 1 else reference.name
    if problem := texts.subdomain(name):
        texts.note(faults, f"{path}.name", reference.name, problem)


def _mounts(container: model.Container, mounts: list[model.VolumeMount], path: str, pod: Pod, faults: Faults) -> None:
    mount_paths: set[str] = set()
    for index, mount in enumerate(mounts):
        mount_path = mount.mount_path
        if mount.name not in pod.volumes and mount.name not in pod.role.volumes and mount.name:
            _no_volume(mount.name, f"{path}.volumeMounts[{index}].name", pod, faults)
        if mount_path in mount_paths and mount_path:
            fault = f'there is another mount at "{shown(mount_path)}"'
            faults.add(f"{path}.volumeMounts[{index}].mountPath", fault, "Mount it elsewhere, or remove it.")
        mount_paths.add(mount_path)
        if (mode := mount_path[-3:]) in _MODES and (folder := mount_path[:-3]):
            fault, fix = f'"{mode}" is part of the path', f"Write {shown(folder)}{_MODES[mode]}."
            faults.add(f"{path}.volumeMounts[{index}].mountPath", fault, fix, advisory=True)
        if mount.sub_path or mount.sub_path_expr or mount.mount_propagation or mount.recursive_read_only:
            _mount(mount, container, f"{path}.volumeMounts[{index}]", faults)


def _without_defaults(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in fields.items() if value not in (None, "")}


def _no_volume(name: str, path: str, pod: Pod, faults: Faults) -> None:
    closest = None
    if len(faults) < MAX_MOUNT_SUGGESTIONS:
        closest = names.closest_name(texts.label_corrected(name), pod.volumes.keys() - {SHARED_MEMORY})
    volume = f"{{name: {shown(name)}, persistentVolumeClaim: {{claimName: {shown(name)}}}}}"
    specs = [template.spec for template in pod.role.all_templates if template.spec]
    for other in (each for spec in reversed(specs) for each in reversed(spec.volumes or ())):
        if other.name == name and isinstance(other, model.Volume):
            volume = shown(json.dumps(json.loads(msgspec.json.encode(other), object_hook=_without_defaults)), 300)
            break
    fix = f'Write "{closest}", or add the volume.' if closest else f"Add {volume} to volumes, or correct the name."
    faults.add(path, f'there is no volume "{shown(name)}"', fix)


def _mount(mount: model.VolumeMount, container: model.Container, path: str, faults: Faults) -> None:
    for field, text in (("subPath", mount.sub_path), ("subPathExpr", mount.sub_path_expr)):
        inside = (text or "").lstrip("/")
        fix = "Name a path inside the volume." if not inside or texts.inside(inside) else f"Write {inside}."
        texts.check(faults, f"{path}.{field}", text, texts.inside, fix)
    if mount.sub_path and mount.sub_path_expr:
        faults.add(f"{path}.subPathExpr", "does not go with subPath", "Remove one of the two.", Kind.FORBIDDEN)
    privileged = container.security_context is not None and container.security_context.privileged
    if mount.mount_propagation == "Bidirectional" and not privileged:
        fault = "Bidirectional is for privileged containers only"
        faults.add(f"{path}.mountPropagation", fault, "Remove it.", Kind.FORBIDDEN)
    if mount.recursive_read_only in {"IfPossible", "Enabled"}:
        if not mount.read_only:
            fault, fix = "needs readOnly: true", "Also set readOnly: true."
            faults.add(f"{path}.recursiveReadOnly", fault, fix, Kind.FORBIDDEN)
        elif mount.mount_propagation not in {None, "None"}:
            fault, fix = "does not go with mountPropagation", "Remove one of the two."
            faults.add(f"{path}.recursiveReadOnly", fault, fix, Kind.FORBIDDEN)


def _devices(devices: list[model.VolumeDevice], path: str, pod: Pod, faults: Faults) -> None:
    seen: set[str] = set()
    for index, device in enumerate(devices):
        where = f"{path}[{index}]"
        volume = pod.volumes.get(device.name)
        if device.name and volume is None and device.name not in pod.role.volumes:
            _no_volume(device.name, f"{where}.name", pod, faults)
        elif device.name and not (volume and (volume.persistent_volume_claim or volume.ephemeral)):
            fault = f'"{shown(device.name)}" is not a claim, and only claims can be devices'
            faults.add(f"{where}.name", fault, "Use a persistentVolumeClaim, or volumeMounts.")
        if device.name in seen or device.device_path in seen:
            faults.add(where, "is listed twice", "Remove one of the two.")
        seen |= {device.name, device.device_path}
        texts.check(faults, f"{where}.devicePath", device.device_path, texts.without_steps_back, 'Leave out "..".')


def _claims(claims: list[model.ClaimUse], path: str, pod: Pod, faults: Faults) -> None:
    seen: set[tuple[str, str | None]] = set()
    for index, use in enumerate(claims):
        where = f"{path}[{index}]"
        if use.name and use.name not in pod.claims:
            fix = "Add it to resourceClaims of the pod, or correct the name."
            faults.add(f"{where}.name", f'there is no resource claim "{shown(use.name)}"', fix)
        texts.check(faults, f"{where}.request", use.request, texts.label)
        if (use.name, use.request or None) in seen and use.name:
            faults.add(f"{where}.name", f'"{shown(use.name)}" is listed twice', "Remove one of the two.")
        seen.add((use.name, use.request or None))


def _resize(policies: list[model.ResizePolicy], path: str, pod: Pod, faults: Faults) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        if policy.resource_name in seen:
            faults.add(f"{path}[{index}].resourceName", "is listed twice", "Remove one of the two.")
        seen.add(policy.resource_name)
        if pod.role.never_restarts and policy.restart_policy == "RestartContainer":
            fault = "RestartContainer does not go with a pod whose restartPolicy is Never"
            faults.add(f"{path}[{index}].restartPolicy", fault, "Write NotRequired.")


_PERIOD: Final = 30  # the API server's default for terminationGracePeriodSeconds


def check_handlers(container: model.Container, path: str, pod: Pod, faults: Faults) -> None:
    for field, probe in container.probes:
        _check_handler(probe, f"{path}.{field}", container, faults)
        if isinstance(probe, model.ReadinessProbe) and probe.termination_grace_period_seconds is not None:
            where = f"{path}.{field}.terminationGracePeriodSeconds"
            faults.add(where, "is not for readiness probes", "Remove it.", Kind.FORBIDDEN)
    if container.lifecycle is not None:
        for field, handler in (
            ("postStart", container.lifecycle.post_start),
            ("preStop", container.lifecycle.pre_stop),
        ):
            if handler is not None:
                _lifecycle(handler, f"{path}.lifecycle.{field}", container, faults, pod)


def check_probes_of_sshd(spec: model.PodSpec, path: str, faults: Faults) -> None:
    """The only container of a worker may run sshd, which answers only on its own port, and not by HTTP or gRPC."""
    containers = spec.containers or []
    sidecars = [container for container in spec.init_containers or () if container.restart_policy == "Always"]
    probes = containers[0].probes if len(containers) == 1 and not sidecars else []
    ports = sshd.listened(containers[0]) if probes else None
    for field, probe in probes if ports is not None else ():
        if any(way and way.host for way in (probe.http_get, probe.tcp_socket)):
            continue
        port, where = f"{ports[0]}" if ports else "", f"{path}.containers[0].{field}"
        number = probe.tcp_socket and probe.tcp_socket.port
        if (way := probe.http_get or probe.grpc) and way.port not in sshd.USUAL | sshd.NAMES:
            fix = f"Write {{tcpSocket: {{port: {port}}}}}." if port else "Remove it, or write tcpSocket."
            faults.add(where, "always fails: only sshd runs here", fix, advisory=True)
        elif ports and isinstance(number, int) and number not in ports:
            faults.add(f"{where}.tcpSocket.port", f"sshd listens on {port}", f"Write {port}.", advisory=True)


def check_no_handlers(container: model.Container, path: str, faults: Faults) -> None:
    """Init containers that run to completion cannot have handlers."""
    given = [field for field, _ in container.probes]
    if container.lifecycle is not None:
        given.append("lifecycle")
    for field in given:
        fault = "is not for init containers, unless they are sidecars"
        faults.add(f"{path}.{field}", fault, "Remove it, or set restartPolicy: Always.", Kind.FORBIDDEN)


def _lifecycle(
    handler: model.LifecycleHandler, path: str, container: model.Container, faults: Faults, pod: Pod
) -> None:
    _check_handler(handler, path, container, faults)
    period = pod.spec.termination_grace_period_seconds
    most = _PERIOD if period is None else period
    if handler.sleep is not None and not 0 <= (handler.sleep.seconds or 0) <= most:
        fault = f"must be between 0 and terminationGracePeriodSeconds, which is {most}"
        faults.add(f"{path}.sleep.seconds", fault, f"Write {most} or less.")


def _check_handler(
    handler: model.Probe | model.LifecycleHandler, path: str, container: model.Container, faults: Faults
) -> None:
    ways: dict[str, object] = {"exec": handler.exec, "httpGet": handler.http_get, "tcpSocket": handler.tcp_socket}
    ways |= {"grpc": handler.grpc} if isinstance(handler, model.Probe) else {"sleep": handler.sleep}
    given = [field for field, way in ways.items() if way is not None]
    if not given:
        *first, last = ways
        faults.add(path, "does nothing", f"Set one of {', '.join(first)} or {last}.", Kind.REQUIRED)
    elif given[1:]:
        faults.add(path, f"has both {given[0]} and {given[1]}", "Keep one of them.", Kind.FORBIDDEN)
    for field, target in (("httpGet", handler.http_get), ("tcpSocket", handler.tcp_socket)):
        if target is not None and isinstance(target.port, str):
            if not target.port:
                faults.add(f"{path}.{field}.port", "is empty", such_as("port"), Kind.REQUIRED)
            elif problem := texts.port_name(target.port):
                fix = f"Write {target.port}." if target.port.isdecimal() else "Write a number, or a port's name."
                texts.note(faults, f"{path}.{field}.port", target.port, problem, fix)
            elif all(port.name != target.port for port in container.ports or ()):
                fault = f'{path.rpartition(".")[2]} of {container.name}: no port "{target.port}"'
                faults.add(f"{path}.{field}.port", fault, "Write a number.", advisory=True)
    if handler.http_get is not None and handler.http_get.port in sshd.USUAL | sshd.NAMES:
        fix = f"Write tcpSocket: {{port: {handler.http_get.port}}} instead."
        faults.add(f"{path}.httpGet", "sshd does not speak HTTP, so it always fails", fix, advisory=True)
    if handler.http_get is not None:
        for index, header in enumerate(handler.http_get.http_headers or ()):
            texts.check(faults, f"{path}.httpGet.httpHeaders[{index}].name", header.name, texts.header)


def check_security(context: model.SecurityContext, path: str, pod: Pod, faults: Faults) -> None:
    if context.proc_mount == "Unmasked" and pod.spec.host_users is not False:
        faults.add(f"{path}.procMount", "Unmasked needs hostUsers: false in the pod", "Remove it.", Kind.FORBIDDEN)
    capabilities = (context.capabilities and context.capabilities.add) or ()
    if context.allow_privilege_escalation is False:
        where, fix = f"{path}.allowPrivilegeEscalation", "Remove one of the two."
        if context.privileged:
            faults.add(where, "is false, but privileged is true", fix, Kind.FORBIDDEN)
        if "CAP_SYS_ADMIN" in capabilities:
            faults.add(where, "is false, but CAP_SYS_ADMIN is added", fix, Kind.FORBIDDEN)
    for index, name in enumerate(capabilities):
        if name.startswith("CAP_"):
            fault = "begins with CAP_, which containerd adds too"
            faults.add(f"{path}.capabilities.add[{index}]", fault, f"Write {name[4:]}.", advisory=True)
    if context.seccomp_profile or context.app_armor_profile:
        _profiles(context, path, faults)


def check_pod_security(context: model.PodSecurityContext, path: str, faults: Faults) -> None:
    _profiles(context, path, faults)
    seen: set[str] = set()
    for index, sysctl in enumerate(context.sysctls or ()):
        where = f"{path}.sysctls[{index}].name"
        if problem := texts.sysctl(sysctl.name):
            texts.note(faults, where, sysctl.name, problem, "Write a kernel parameter.")
        elif sysctl.name in seen:
            faults.add(where, f'"{sysctl.name}" is listed twice', "Remove one of the two.")
        seen.add(sysctl.name)


def _profiles(context: model.SecurityContext | model.PodSecurityContext, path: str, faults: Faults) -> None:
    for field, profile in (
        ("seccompProfile", context.seccomp_profile),
        ("appArmorProfile", context.app_armor_profile),
    ):
        if profile is None:
            continue
        where, name = f"{path}.{field}.localhostProfile", profile.localhost_profile
        if profile.type == "Localhost":
            if name is None or (not name.strip() and field == "appArmorProfile"):
                faults.add(where, "is missing", "Name the profile on the nodes.", Kind.REQUIRED)
            elif field == "seccompProfile" and (problem := texts.inside(name)):
                texts.note(faults, where, name, problem, "Name a path below the node's folder of profiles.")
            elif field == "appArmorProfile" and name != name.strip():
                faults.add(where, "has blanks around it", "Remove them.")
        elif name is not None and profile.type:
            fix = "Remove it, or set the type to Localhost."
            faults.add(where, f"does not go with the type {profile.type}", fix, Kind.FORBIDDEN)


_NO_CONTEXT: Final = model.SecurityContext()
# These programs run as root: mpirun with --allow-run-as-root, and sshd without a configuration file (-f).
_OF_ROOT: Final = re.compile(r"allow-run-as-root|/sshd\b(?!.* -f)")


def check_users(spec: model.PodSpec, path: str, faults: Faults) -> None:
    """The kubelet does not start a container with `runAsNonRoot: true` and the user 0 (`verifyRunAsNonRoot`)."""
    if spec.os is not None and spec.os.name == "windows":
        return
    of_pod = spec.security_context or _NO_CONTEXT
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            own = container.security_context or _NO_CONTEXT
            non_root = of_pod.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root
            user = of_pod.run_as_user if own.run_as_user is None else own.run_as_user
            if not non_root or user != 0:
                continue
            if _OF_ROOT.search(" ".join(container.argv)):
                where = path if own.run_as_non_root is None else f"{path}.{field}[{index}]"
                fault, fix = "is true, but runAsUser is 0, so the container never starts", "Set it to false."
                faults.add(f"{where}.securityContext.runAsNonRoot", fault, fix)
            else:
                where = path if own.run_as_user is None else f"{path}.{field}[{index}]"
                fault = "is 0, but runAsNonRoot is true, so the container never starts"
                fix = "Set it to 1000, or runAsNonRoot to false."
                faults.add(f"{where}.securityContext.runAsUser", fault, fix)
