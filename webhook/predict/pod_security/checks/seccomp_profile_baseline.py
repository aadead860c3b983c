"""The container runtime's seccomp profile, or one installed on the node, is not switched off.

**Restricted fields (from v1.19):**
- `spec.securityContext.seccompProfile.type`
- `spec.containers[*].securityContext.seccompProfile.type`

**Allowed values:** unset, `RuntimeDefault`, `Localhost`

**Restricted fields (up to v1.18):**
- `metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]`
- `metadata.annotations[container.seccomp.security.alpha.kubernetes.io/*]`

**Allowed values:** unset, `runtime/default`, `docker/default`, `localhost/*`
"""

from webhook.predict.pod_security.checks import Result, Revision, refusal, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import Profile
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import go_quoted, plural, quoted

ID = "seccompProfile_baseline"
FIELD = "securityContext.seccompProfile.type"
POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"


def by_annotation(pod: Subject) -> Result | None:
    """Before v1.19 there were only annotations; those of containers that do not exist do not count."""
    names = {POD_ANNOTATION, *(CONTAINER_ANNOTATION + place.name for place in pod.containers)}
    bad = sorted(name for name in names if _forbidden_annotation(pod.annotations.get(name)))
    if not bad:
        return None
    written = sorted(f"{name}={go_quoted(pod.annotations[name])}" for name in bad)
    detail = f"forbidden {plural('annotation', 'annotations', bad)} {', '.join(written)}"
    return Result(ID, "seccompProfile", detail, tuple(f"metadata.annotations[{name}]" for name in bad))


def by_field(pod: Subject) -> Result | None:
    """From v1.19 annotations do not count."""
    return forbidden_profiles(pod, ID)


def forbidden_profiles(pod: Subject, check: str) -> Result | None:
    """Profiles that are set to what is not allowed; `check` is the id under which they are reported."""
    of_pod = pod.security.seccomp_profile
    bad_pod = of_pod is not None and not is_allowed(of_pod)
    bad = [place for place in pod.containers if (own := place.security.seccomp_profile) and not is_allowed(own)]
    profiles = [of_pod] * bad_pod + [place.security.seccomp_profile for place in bad]
    types = sorted({profile.type or "" for profile in profiles if profile is not None})
    return refusal(check, "seccompProfile", bad, f"must not set {FIELD} to {quoted(types)}", FIELD, pod=bad_pod)


def is_allowed(profile: Profile) -> bool:
    """Whether it is a profile that confines."""
    return profile.type in ("RuntimeDefault", "Localhost")


def _forbidden_annotation(value: str | None) -> bool:
    return value not in (None, "runtime/default", "docker/default") and not str(value).startswith("localhost/")


register(ID, Level.BASELINE, Revision(Version(0), by_annotation), Revision(Version(19), by_field))
