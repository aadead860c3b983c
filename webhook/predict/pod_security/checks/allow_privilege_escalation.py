"""No process gains more privileges than its parent, as by set-user-ID files.

**Restricted fields:**
- `spec.containers[*].securityContext.allowPrivilegeEscalation`

**Allowed values:** `false`; from v1.25 anything in pods for Windows
"""

from webhook.predict.pod_security.checks import Check, Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import containers, fields

ID = "allowPrivilegeEscalation"


def for_any_os(pod: Subject) -> Result | None:
    """Every container has to say no."""
    bad = [place for place in pod.containers if place.security.allow_privilege_escalation is not False]
    if not bad:
        return None
    return Result(
        ID,
        "allowPrivilegeEscalation != false",
        f"{containers(bad)} must set securityContext.allowPrivilegeEscalation=false",
        fields("securityContext.allowPrivilegeEscalation", bad),
    )


def for_linux(pod: Subject) -> Result | None:
    """The API server itself refuses the field in pods for Windows."""
    return None if pod.for_windows else for_any_os(pod)


register(
    Check(
        ID,
        Level.RESTRICTED,
        (Revision(Version(8), for_any_os), Revision(Version(25), for_linux)),
    )
)
