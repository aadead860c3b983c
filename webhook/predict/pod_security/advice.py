"""The fix for a violation: a change of the template by its author, or of the level by the administrator."""

from collections.abc import Collection, Iterator
from typing import Final

from webhook.predict.pod_security.checks import (
    DEFAULT_CAPABILITIES,
    REGISTRY,
    RESTRICTED_CAPABILITIES,
    Result,
    evaluate,
)
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import Capabilities, PodSpec, PodTemplate
from webhook.predict.pod_security.subject import Subject, quoted

_ADVICE: Final = {
    "allowPrivilegeEscalation": "Set allowPrivilegeEscalation: false.",
    "appArmorProfile": "Remove the profile, or use RuntimeDefault.",
    "hostPorts": "Remove hostPort: pods reach each other without it.",
    "hostProbesAndHostLifecycle": "Remove host: without it the request is sent to the pod itself.",
    "privileged": "Remove privileged: a device resource such as nvidia.com/gpu or rdma/hca brings the devices.",
    "procMount": "Remove procMount.",
    "procMount_restricted": "Remove procMount.",
    "runAsNonRoot": "Set runAsNonRoot: true, and a runAsUser above 0 where the image is made for root.",
    "runAsUser": "Set runAsUser to a user above 0 that the image has.",
    "seLinuxOptions": "Remove seLinuxOptions.",
    "seccompProfile_baseline": "Set seccompProfile.type: RuntimeDefault.",
    "seccompProfile_restricted": "Set seccompProfile.type: RuntimeDefault.",
    "sysctls": "Remove the sysctl; set it on the nodes if they need it.",
    "windowsHostProcess": "Remove hostProcess.",
}
# An issue explains why the capability often has no effect, and how container runtimes allow memory locking without it:
# https://github.com/NVIDIA/nvidia-container-toolkit/issues/2037
_IPC_LOCK: Final = (
    "IPC_LOCK is in effect for root only: for RDMA to pin memory, administrators raise the limit on the nodes instead "
    "(LimitMEMLOCK=infinity for the container runtime)."
)
_HOST: Final = {
    "host_network": (
        "Remove hostNetwork: pods reach each other without it. For RDMA request a device resource such as rdma/hca, or "
        "a secondary network."
    ),
    "host_ipc": "Remove hostIPC: for shared memory mount an emptyDir with medium: Memory at /dev/shm.",
    "host_pid": "Remove hostPID.",
}
# A key is compared with the start of the path on the host, after a slash is appended to that path.
_INSTEAD_OF: Final = {
    "/dev/infiniband/": "RDMA needs no hostPath: a device resource such as rdma/hca in limits brings the devices",
    "/dev/shm/": "use an emptyDir with medium: Memory",  # noqa: S108 - a path in users' templates
    "/dev/hugepages/": "use an emptyDir with medium: HugePages",
    "/dev/nvidia": "GPUs need no hostPath: nvidia.com/gpu in limits brings the devices",
    "/dev/kfd/": "GPUs need no hostPath: amd.com/gpu in limits brings the devices",
    "/dev/dri/": "GPUs need no hostPath: amd.com/gpu in limits brings the devices",
    "/dev/": "devices need no hostPath: a device resource in limits brings them",
}
_STORAGE: Final = "use a PersistentVolumeClaim, or an emptyDir for scratch space"


def advice(result: Result, template: PodTemplate) -> str:
    """The change of the template that fixes the violation, as sentences."""
    spec = template.spec or PodSpec()
    match result.check:
        case "hostNamespaces":
            return " ".join(text for attribute, text in _HOST.items() if getattr(spec, attribute))
        case "hostPathVolumes" | "restrictedVolumes":
            text = "; ".join(dict.fromkeys(_volumes(spec, result)))
            return f"{text[0].upper()}{text[1:]}."
        case "capabilities_baseline":
            return " ".join(_capabilities(result, template, DEFAULT_CAPABILITIES))
        case "capabilities_restricted":
            return " ".join(_capabilities(result, template, RESTRICTED_CAPABILITIES))
        case check:
            return _ADVICE[check]


def permitting(result: Result, version: Version, template: PodTemplate) -> Level:
    """The strictest level that allows the pod despite this violation. The check ran at `version`."""
    check = REGISTRY[result.check]
    if check.level is Level.BASELINE or check.revision(version) is None:
        return Level.PRIVILEGED
    of_baseline = {violation.check for violation in evaluate(Level.BASELINE, version, template)}
    return Level.PRIVILEGED if of_baseline.intersection(check.overrides) else Level.BASELINE


def _volumes(spec: PodSpec, result: Result) -> Iterator[str]:
    for volume in spec.volumes or ():
        if volume.host_path is not None:
            path = f"{volume.host_path.path or ''}/"
            yield next((text for start, text in _INSTEAD_OF.items() if path.startswith(start)), _STORAGE)
    if any(not path.endswith(".hostPath") for path in result.paths):
        yield "reach storage through a PersistentVolumeClaim"


def _capabilities(result: Result, template: PodTemplate, allowed: Collection[str]) -> Iterator[str]:
    if any(path.endswith(".drop") for path in result.paths):
        yield 'Set capabilities.drop: ["ALL"].'
    contexts = (place.security.capabilities or Capabilities() for place in Subject(template).containers)
    added = {name for capabilities in contexts for name in capabilities.add or ()}
    if forbidden := sorted(added.difference(allowed)):
        yield f"Remove {quoted(forbidden)} from capabilities.add."
    if "IPC_LOCK" in added:
        yield _IPC_LOCK
