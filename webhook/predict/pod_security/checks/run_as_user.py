"""The user is not 0, unless the pod has a user namespace of its own.

**Restricted fields:**
- `spec.securityContext.runAsUser`
- `spec.containers[*].securityContext.runAsUser`

**Allowed values:** unset, any but `0`; from v1.35 anything with `hostUsers: false`
"""

from webhook.predict.pod_security.checks import Result, Revision, refusal, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject

ID = "runAsUser"


def is_not_root(pod: Subject) -> Result | None:
    """A 0 of the pod counts even where every container says otherwise."""
    of_pod = pod.security.run_as_user == 0
    bad = [place for place in pod.containers if place.security.run_as_user == 0]
    return refusal(ID, "runAsUser=0", bad, "must not set runAsUser=0", "securityContext.runAsUser", pod=of_pod)


register(
    ID,
    Level.RESTRICTED,
    Revision(Version(23), is_not_root),
    Revision(Version(35), is_not_root, spares=lambda pod: pod.in_user_namespace),
)
