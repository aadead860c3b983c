"""What the container runtime hides in /proc stays hidden, unless the pod has a user namespace of its own.

**Restricted fields:**
- `spec.containers[*].securityContext.procMount`

**Allowed values:** unset, `Default`; from v1.35 anything with `hostUsers: false`
"""

from webhook.predict.pod_security.checks import Check, Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import containers, fields, quoted

ID = "procMount"


def masked(pod: Subject, check: str = ID) -> Result | None:
    """Whatever the user namespace; `check` is the id under which it is reported."""
    bad = [place for place in pod.containers if place.security.proc_mount not in (None, "Default")]
    if not bad:
        return None
    kinds = sorted({str(place.security.proc_mount) for place in bad})
    return Result(
        check,
        "procMount",
        f"{containers(bad)} must not set securityContext.procMount to {quoted(kinds)}",
        fields("securityContext.procMount", bad),
    )


def masked_for_host_users(pod: Subject) -> Result | None:
    """Root in a user namespace has no power over what /proc would show."""
    return None if pod.in_user_namespace else masked(pod)


register(
    Check(
        ID,
        Level.BASELINE,
        (
            Revision(Version(0), masked),
            Revision(Version(35), masked_for_host_users),
        ),
    )
)
