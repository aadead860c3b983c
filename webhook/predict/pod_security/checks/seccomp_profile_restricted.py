"""A seccomp profile is set, the container runtime's or one installed on the node.

**Restricted fields:**
- `spec.securityContext.seccompProfile.type`
- `spec.containers[*].securityContext.seccompProfile.type`

**Allowed values:** `RuntimeDefault`, `Localhost`; unset in a container if the pod has one; from v1.25 anything
in pods for Windows
"""

from webhook.predict.pod_security.checks import Result, Revision, register, seccomp_profile_baseline
from webhook.predict.pod_security.checks.seccomp_profile_baseline import forbidden_profiles
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import containers, fields

ID = "seccompProfile_restricted"
OVERRIDES = (seccomp_profile_baseline.ID,)


def sets_profile(pod: Subject) -> Result | None:
    """A forbidden profile is named first; a missing one only if there is none of those."""
    if found := forbidden_profiles(pod, ID):
        return found
    if pod.security.seccomp_profile is not None:
        return None
    unset = [place for place in pod.containers if place.security.seccomp_profile is None]
    if not unset:
        return None
    wanted = 'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    detail = f"pod or {containers(unset)} must set {wanted}"
    return Result(ID, "seccompProfile", detail, fields("securityContext.seccompProfile.type", unset))


register(
    ID,
    Level.RESTRICTED,
    Revision(Version(19), sets_profile, OVERRIDES),
    Revision(Version(25), sets_profile, OVERRIDES, spares=lambda pod: pod.for_windows),
)
