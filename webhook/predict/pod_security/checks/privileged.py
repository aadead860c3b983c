"""No container is privileged, for that switches off most of what keeps it apart from the host.

**Restricted fields:**
- `spec.containers[*].securityContext.privileged`

**Allowed values:** unset, `false`
"""

from webhook.predict.pod_security.checks import Result, Revision, refusal, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject

ID = "privileged"
FIELD = "securityContext.privileged"


def is_not_privileged(pod: Subject) -> Result | None:
    """No container may say yes."""
    bad = [place for place in pod.containers if place.security.privileged]
    return refusal(ID, "privileged", bad, f"must not set {FIELD}=true", FIELD)


register(ID, Level.BASELINE, Revision(Version(0), is_not_privileged))
