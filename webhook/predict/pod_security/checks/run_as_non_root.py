"""Containers are made to run as another user than root, unless the pod has a user namespace of its own.

**Restricted fields:**
- `spec.securityContext.runAsNonRoot`
- `spec.containers[*].securityContext.runAsNonRoot`

**Allowed values:** `true`; unset in a container if the pod says `true`; from v1.35 anything with `hostUsers: false`
"""

from webhook.predict.pod_security.checks import Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import containers, fields, setters

ID = "runAsNonRoot"
FIELD = "securityContext.runAsNonRoot"


def is_non_root(pod: Subject) -> Result | None:
    """Who says `false` is named first; who says nothing only if nobody does."""
    of_pod = pod.security.run_as_non_root
    bad = [place for place in pod.containers if place.security.run_as_non_root is False]
    if bad or of_pod is False:
        detail = f"{setters(of_pod is False, bad)} must not set securityContext.runAsNonRoot=false"
        return Result(ID, "runAsNonRoot != true", detail, fields(FIELD, bad, pod=of_pod is False))
    unset = [] if of_pod else [place for place in pod.containers if place.security.run_as_non_root is None]
    if not unset:
        return None
    detail = f"pod or {containers(unset)} must set securityContext.runAsNonRoot=true"
    return Result(ID, "runAsNonRoot != true", detail, fields(FIELD, unset))


register(
    ID,
    Level.RESTRICTED,
    Revision(Version(0), is_non_root),
    Revision(Version(35), is_non_root, spares=lambda pod: pod.in_user_namespace),
)
