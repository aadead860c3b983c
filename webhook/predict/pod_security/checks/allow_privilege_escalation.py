"""No process gains more privileges than its parent, as by set-user-ID files.

**Restricted fields:**
- `spec.containers[*].securityContext.allowPrivilegeEscalation`

**Allowed values:** `false`; from v1.25 anything in pods for Windows
"""

from webhook.predict.pod_security.checks import Result, Revision, refusal, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject

ID = "allowPrivilegeEscalation"
FIELD = "securityContext.allowPrivilegeEscalation"


def gains_no_privileges(pod: Subject) -> Result | None:
    """Every container has to say no."""
    bad = [place for place in pod.containers if place.security.allow_privilege_escalation is not False]
    fault = f"must set {FIELD}=false"
    return refusal(ID, "allowPrivilegeEscalation != false", bad, fault, FIELD)


register(
    ID,
    Level.RESTRICTED,
    Revision(Version(8), gains_no_privileges),
    Revision(Version(25), gains_no_privileges, spares=lambda pod: pod.for_windows),
)
