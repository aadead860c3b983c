"""What the API server checks of each container of a pod, its probes and handlers apart."""

from collections.abc import Set
from typing import NamedTuple

from webhook.api import names
from webhook.api.volume import SHARED_MEMORY
from webhook.predict.limits import MAX_MOUNT_SUGGESTIONS
from webhook.predict.pod_template import texts
from webhook.predict.pod_template.check_files import check_field, check_resource_field
from webhook.predict.pod_template.check_security import check_security
from webhook.predict.pod_template.containers import (
    Container,
    EnvFrom,
    EnvVar,
    Port,
    ValueFrom,
    VolumeDevice,
    VolumeMount,
)
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.references import KeyRef, SourceRef
from webhook.predict.pod_template.resources import check_resources

_FIELDS = frozenset(
    {
        *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.host"),
        *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
    }
)
_SOURCES = "fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef"


class Pod(NamedTuple):
    """What the pod around a container has."""

    volumes: Set[str]
    """Names of its volumes."""
    operators: tuple[str, ...]
    """Names of those that the operator adds."""
    claimed: list[str]
    """Names of the volumes that are claims, which alone can be devices."""
    claims: Set[str]
    """Names of its resource claims."""
    host_users: bool
    never_restarts: bool
    without_ranges: bool | None
    """No LimitRange fills in resources; None where that is not known."""


def check_container(container: Container, path: str, pod: Pod, found: Faults) -> None:
    """Everything that init containers have too."""
    if problem := texts.label(container.name):
        texts.note(found, f"{path}.name", container.name, problem, "Rename the container.")
    if container.ports:
        _ports(container.ports, f"{path}.ports", found)
    if container.env:
        _env(container.env, path, pod, found)
    if container.env_from:
        _env_from(container.env_from, path, found)
    if container.volume_mounts:
        _mounts(container, path, pod, found)
    if container.volume_devices:
        _devices(container.volume_devices, path, pod, found)
    if container.resources is not None:
        check_resources(
            container.resources,
            f"{path}.resources",
            found,
            without_ranges=pod.without_ranges,
        )
        if container.resources.claims:
            _claims(container, path, pod, found)
    if container.resize_policy:
        _resize(container, path, pod, found)
    if container.security_context is not None:
        check_security(container.security_context, f"{path}.securityContext", found, host_users=pod.host_users)


def _ports(ports: list[Port], path: str, found: Faults) -> None:
    used: set[str] = set()
    for index, port in enumerate(ports):
        if port.name:
            if problem := texts.port_name(port.name):
                texts.note(found, f"{path}[{index}].name", port.name, problem, "Rename the port.")
            elif port.name in used:
                found.add(f"{path}[{index}].name", f'there is another port "{port.name}"', "Rename the port.")
            used.add(port.name)


def _env(env: list[EnvVar], path: str, pod: Pod, found: Faults) -> None:
    if not texts.variables([variable.name for variable in env]):
        for index, variable in enumerate(env):
            if problem := texts.variable(variable.name):
                texts.note(found, f"{path}.env[{index}].name", variable.name, problem, "Rename the variable.")
    for index, variable in enumerate(env):
        if variable.value_from is not None:
            _value_from(variable, variable.value_from, f"{path}.env[{index}].valueFrom", found)
            _file(variable.value_from, f"{path}.env[{index}].valueFrom.fileKeyRef", pod, found)


def _value_from(variable: EnvVar, source: ValueFrom, where: str, found: Faults) -> None:
    number = (
        (source.field_ref is not None)
        + (source.resource_field_ref is not None)
        + (source.config_map_key_ref is not None)
        + (source.secret_key_ref is not None)
        + (source.file_key_ref is not None)
    )
    if not number:
        found.add(where, "names no source", f"Set one of {_SOURCES}, or value instead of it.", Kind.REQUIRED)
    elif variable.value:
        found.add(where, "does not go with value", "Remove one of the two.", Kind.FORBIDDEN)
    elif number > 1:
        found.add(where, f"names {number} sources, and there can be only one", "Keep one of them.", Kind.FORBIDDEN)
    if source.field_ref is not None:
        check_field(source.field_ref, f"{where}.fieldRef", _FIELDS, found)
    if source.resource_field_ref is not None:
        check_resource_field(source.resource_field_ref, f"{where}.resourceFieldRef", found)
    if source.config_map_key_ref is not None:
        _key(source.config_map_key_ref, f"{where}.configMapKeyRef", found)
    if source.secret_key_ref is not None:
        _key(source.secret_key_ref, f"{where}.secretKeyRef", found)


def _file(source: ValueFrom, path: str, pod: Pod, found: Faults) -> None:
    if source.file_key_ref is not None and (name := source.file_key_ref.volume_name) and name not in pod.volumes:
        fix = "Add an emptyDir under volumes, or correct the name."
        found.add(f"{path}.volumeName", f'there is no volume "{shown(name)}"', fix)


def _key(reference: KeyRef, path: str, found: Faults) -> None:
    if problem := texts.subdomain(reference.name):
        texts.note(found, f"{path}.name", reference.name, problem, "Correct the name.")
    if problem := texts.config_key(reference.key):
        texts.note(found, f"{path}.key", reference.key, problem, "Correct the key.")


def _env_from(sources: list[EnvFrom], path: str, found: Faults) -> None:
    for index, source in enumerate(sources):
        where = f"{path}.envFrom[{index}]"
        if source.prefix and (problem := texts.variable(source.prefix)):
            texts.note(found, f"{where}.prefix", source.prefix, problem, "Correct the prefix.")
        references = {"configMapRef": source.config_map_ref, "secretRef": source.secret_ref}
        given = {field: reference for field, reference in references.items() if reference is not None}
        if not given:
            found.add(where, "names no source", "Set configMapRef or secretRef.", Kind.REQUIRED)
        elif len(given) > 1:
            found.add(where, "names two sources, and there can be only one", "Make two items of it.", Kind.FORBIDDEN)
        for field, reference in given.items():
            _source(reference, f"{where}.{field}", found)


def _source(reference: SourceRef, path: str, found: Faults) -> None:
    # Taken with a "-" at the end, as the start of a generated name is.
    name = reference.name.removesuffix("-") if len(reference.name) > 1 else reference.name
    if problem := texts.subdomain(name):
        texts.note(found, f"{path}.name", reference.name, problem, "Correct the name.")


def _mounts(container: Container, path: str, pod: Pod, found: Faults) -> None:
    places: set[str] = set()
    for index, mount in enumerate(container.volume_mounts or ()):
        if mount.name not in pod.volumes and mount.name not in pod.operators and mount.name:
            _no_volume(mount.name, f"{path}.volumeMounts[{index}].name", pod, found)
        if mount.mount_path in places and mount.mount_path:
            fault = f'there is another mount at "{shown(mount.mount_path)}"'
            found.add(f"{path}.volumeMounts[{index}].mountPath", fault, "Mount it elsewhere, or keep one of the two.")
        places.add(mount.mount_path)
        if mount.sub_path or mount.sub_path_expr or mount.mount_propagation or mount.recursive_read_only:
            _mount(mount, container, f"{path}.volumeMounts[{index}]", found)


def _no_volume(name: str, path: str, pod: Pod, found: Faults) -> None:
    written = pod.volumes - {SHARED_MEMORY}
    meant = names.closest_name(name, written) if len(found) < MAX_MOUNT_SUGGESTIONS else None
    fix = f'Write "{meant}", or add the volume.' if meant else "Add the volume under volumes, or correct the name."
    found.add(path, f'there is no volume "{shown(name)}"', fix)


def _mount(mount: VolumeMount, container: Container, path: str, found: Faults) -> None:
    for field, text in (("subPath", mount.sub_path), ("subPathExpr", mount.sub_path_expr)):
        if text and (problem := texts.inside(text)):
            texts.note(found, f"{path}.{field}", text, problem, "Name a path inside the volume.")
    if mount.sub_path and mount.sub_path_expr:
        found.add(f"{path}.subPathExpr", "does not go with subPath", "Remove one of the two.", Kind.FORBIDDEN)
    privileged = container.security_context is not None and container.security_context.privileged
    if mount.mount_propagation == "Bidirectional" and not privileged:
        fault = "Bidirectional is for privileged containers only"
        found.add(f"{path}.mountPropagation", fault, "Remove it.", Kind.FORBIDDEN)
    if mount.recursive_read_only in {"IfPossible", "Enabled"}:
        if not mount.read_only:
            fault, fix = "needs readOnly: true", "Set readOnly: true beside it."
            found.add(f"{path}.recursiveReadOnly", fault, fix, Kind.FORBIDDEN)
        elif mount.mount_propagation not in {None, "None"}:
            fault, fix = "does not go with mountPropagation", "Remove one of the two."
            found.add(f"{path}.recursiveReadOnly", fault, fix, Kind.FORBIDDEN)


def _devices(devices: list[VolumeDevice], path: str, pod: Pod, found: Faults) -> None:
    seen: set[str] = set()
    for index, device in enumerate(devices):
        where = f"{path}.volumeDevices[{index}]"
        if device.name and device.name not in pod.volumes and device.name not in pod.operators:
            _no_volume(device.name, f"{where}.name", pod, found)
        elif device.name and device.name not in pod.claimed:
            fault = f'"{shown(device.name)}" is no claim, and only claims can be devices'
            found.add(f"{where}.name", fault, "Use a persistentVolumeClaim, or volumeMounts.")
        if device.name in seen or device.device_path in seen:
            found.add(where, "is there twice", "Remove one of the two.")
        seen |= {device.name, device.device_path}
        if problem := texts.without_steps_back(device.device_path):
            texts.note(found, f"{where}.devicePath", device.device_path, problem, "Correct the path.")


def _claims(container: Container, path: str, pod: Pod, found: Faults) -> None:
    seen: set[tuple[str, str | None]] = set()
    for index, use in enumerate((container.resources and container.resources.claims) or ()):
        where = f"{path}.resources.claims[{index}]"
        if use.name and use.name not in pod.claims:
            fix = "Add it to resourceClaims of the pod, or correct the name."
            found.add(f"{where}.name", f'there is no resource claim "{shown(use.name)}"', fix)
        if use.request and (problem := texts.label(use.request)):
            texts.note(found, f"{where}.request", use.request, problem, "Correct the name.")
        if (use.name, use.request or None) in seen and use.name:
            found.add(f"{where}.name", f'"{shown(use.name)}" is there twice', "Remove one of the two.")
        seen.add((use.name, use.request or None))


def _resize(container: Container, path: str, pod: Pod, found: Faults) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(container.resize_policy or ()):
        if policy.resource_name in seen:
            found.add(f"{path}.resizePolicy[{index}].resourceName", "is there twice", "Remove one of the two.")
        seen.add(policy.resource_name)
        if pod.never_restarts and policy.restart_policy == "RestartContainer":
            fault = "RestartContainer does not go with a pod whose restartPolicy is Never"
            found.add(f"{path}.resizePolicy[{index}].restartPolicy", fault, "Write NotRequired.")
