"""Security contexts: what does not go together."""

from webhook.predict.pod_template import texts
from webhook.predict.pod_template.fault import Faults, Kind
from webhook.predict.pod_template.security import Context, PodSecurityContext, SecurityContext
from webhook.predict.pod_template.template import PodSpec


def check_security(context: SecurityContext, path: str, found: Faults, *, host_users: bool) -> None:
    """Of a container."""
    if context.proc_mount == "Unmasked" and host_users:
        found.add(f"{path}.procMount", "Unmasked needs hostUsers: false in the pod", "Remove it.", Kind.FORBIDDEN)
    if context.allow_privilege_escalation is False:
        if context.privileged:
            fault = "is false, but privileged is true"
            found.add(f"{path}.allowPrivilegeEscalation", fault, "Remove one of the two.", Kind.FORBIDDEN)
        if context.capabilities is not None and "CAP_SYS_ADMIN" in (context.capabilities.add or ()):
            fault = "is false, but CAP_SYS_ADMIN is added"
            found.add(f"{path}.allowPrivilegeEscalation", fault, "Remove one of the two.", Kind.FORBIDDEN)
    if context.seccomp_profile is not None or context.app_armor_profile is not None:
        _profiles(context, path, found)


def check_pod_security(context: PodSecurityContext, path: str, found: Faults) -> None:
    """Of a pod."""
    if context.seccomp_profile is not None or context.app_armor_profile is not None:
        _profiles(context, path, found)
    seen: set[str] = set()
    for index, sysctl in enumerate(context.sysctls or ()):
        if problem := texts.sysctl(sysctl.name):
            texts.note(found, f"{path}.sysctls[{index}].name", sysctl.name, problem, "Correct the name.")
        elif sysctl.name in seen:
            found.add(f"{path}.sysctls[{index}].name", f'"{sysctl.name}" is there twice', "Remove one of the two.")
        seen.add(sysctl.name)


def _profiles(context: Context, path: str, found: Faults) -> None:
    for field, profile in (
        ("seccompProfile", context.seccomp_profile),
        ("appArmorProfile", context.app_armor_profile),
    ):
        if profile is None:
            continue
        where, name = f"{path}.{field}.localhostProfile", profile.localhost_profile
        if profile.type == "Localhost":
            if name is None or (not name.strip() and field == "appArmorProfile"):
                found.add(where, "is missing", "Name the profile on the nodes.", Kind.REQUIRED)
            elif field == "seccompProfile" and (problem := texts.inside(name)):
                texts.note(found, where, name, problem, "Name a path below the node's folder of profiles.")
            elif field == "appArmorProfile" and name != name.strip():
                found.add(where, "has blanks around it", "Remove them.")
        elif name is not None and profile.type:
            fix = "Remove it, or set the type to Localhost."
            found.add(where, f"does not go with the type {profile.type}", fix, Kind.FORBIDDEN)


def check_users(spec: PodSpec, path: str, found: Faults) -> None:
    """Of every container: the kubelet starts none as root that must not be root (`verifyRunAsNonRoot`)."""
    of_pod = spec.security_context
    if spec.os is not None and spec.os.name == "windows":
        return
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            own = container.security_context
            if own is None and of_pod is None:
                continue
            non_root, user, where = None, None, path
            if of_pod is not None:
                non_root, user = of_pod.run_as_non_root, of_pod.run_as_user
            if own is not None:
                non_root = non_root if own.run_as_non_root is None else own.run_as_non_root
                if own.run_as_user is not None:
                    user, where = own.run_as_user, f"{path}.{kind}[{index}]"
            if non_root and user == 0:
                fault = "is 0, but runAsNonRoot is true, so the container never starts"
                fix = "Set it to another user, or runAsNonRoot to false."
                found.add(f"{where}.securityContext.runAsUser", fault, fix)
