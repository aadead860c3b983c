"""The user is not 0, unless the pod has a user namespace of its own.

**Restricted fields:**
- `spec.securityContext.runAsUser`
- `spec.containers[*].securityContext.runAsUser`

**Allowed values:** unset, any but `0`; from v1.35 anything with `hostUsers: false`
"""

from webhook.predict.pod_security.checks import Check, Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import fields, setters

ID = "runAsUser"


def is_not_root(pod: Subject) -> Result | None:
    """A 0 of the pod counts even where every container says otherwise."""
    of_pod = pod.security.run_as_user == 0
    bad = [place for place in pod.containers if place.security.run_as_user == 0]
    if not (bad or of_pod):
        return None
    detail = f"{setters(of_pod, bad)} must not set runAsUser=0"
    return Result(ID, "runAsUser=0", detail, fields("securityContext.runAsUser", bad, pod=of_pod))


def is_not_root_of_host(pod: Subject) -> Result | None:
    """Root in a user namespace is nobody on the host."""
    return None if pod.in_user_namespace else is_not_root(pod)


register(
    Check(
        ID,
        Level.RESTRICTED,
        (
            Revision(Version(23), is_not_root),
            Revision(Version(35), is_not_root_of_host),
        ),
    )
)
