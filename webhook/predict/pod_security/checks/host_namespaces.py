"""The host's network, processes and inter-process communication stay out of sight.

**Restricted fields:**
- `spec.hostNetwork`
- `spec.hostPID`
- `spec.hostIPC`

**Allowed values:** unset, `false`
"""

from webhook.predict.pod_security.checks import Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject

ID = "hostNamespaces"


def shares_none(pod: Subject) -> Result | None:
    """Each of the three on its own."""
    spec = pod.spec
    if not (spec.host_network or spec.host_pid or spec.host_ipc):
        return None
    given = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
    shared = [name for name, value in given.items() if value]
    detail = ", ".join(f"{name}=true" for name in shared)
    return Result(ID, "host namespaces", detail, tuple(f"spec.{name}" for name in shared))


register(ID, Level.BASELINE, Revision(Version(0), shares_none))
