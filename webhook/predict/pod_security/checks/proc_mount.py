"""What the container runtime hides in /proc stays hidden, unless the pod has a user namespace of its own.

**Restricted fields:**
- `spec.containers[*].securityContext.procMount`

**Allowed values:** unset, `Default`; from v1.35 anything with `hostUsers: false`
"""

from webhook.predict.pod_security.checks import Result, Revision, refusal, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import quoted

ID = "procMount"
FIELD = "securityContext.procMount"


def masked(pod: Subject, check: str = ID) -> Result | None:
    """Whatever the user namespace; `check` is the id under which it is reported."""
    bad = [place for place in pod.containers if place.security.proc_mount not in (None, "Default")]
    kinds = sorted({str(place.security.proc_mount) for place in bad})
    return refusal(check, "procMount", bad, f"must not set {FIELD} to {quoted(kinds)}", FIELD)


register(
    ID,
    Level.BASELINE,
    Revision(Version(0), masked),
    Revision(Version(35), masked, spares=lambda pod: pod.in_user_namespace),
)
