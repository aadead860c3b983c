"""No container is privileged, for that switches off most of what keeps it apart from the host.

**Restricted fields:**
- `spec.containers[*].securityContext.privileged`

**Allowed values:** unset, `false`
"""

from webhook.predict.pod_security.checks import Check, Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import containers, fields

ID = "privileged"


def is_not_privileged(pod: Subject) -> Result | None:
    """No container may say yes."""
    bad = [place for place in pod.containers if place.security.privileged]
    if not bad:
        return None
    return Result(
        ID,
        "privileged",
        f"{containers(bad)} must not set securityContext.privileged=true",
        fields("securityContext.privileged", bad),
    )


register(Check(ID, Level.BASELINE, (Revision(Version(0), is_not_privileged),)))
