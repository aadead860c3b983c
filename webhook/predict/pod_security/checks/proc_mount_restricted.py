"""What the container runtime hides in /proc stays hidden, with or without a user namespace.

**Restricted fields:**
- `spec.containers[*].securityContext.procMount`

**Allowed values:** unset, `Default`
"""

from webhook.predict.pod_security.checks import Result, Revision, proc_mount, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject

ID = "procMount_restricted"


def masked(pod: Subject) -> Result | None:
    """What baseline asked of all pods before v1.35."""
    return proc_mount.masked(pod, ID)


register(ID, Level.RESTRICTED, Revision(Version(35), masked, overrides=(proc_mount.ID,)))
