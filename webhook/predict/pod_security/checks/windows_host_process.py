"""No pod for Windows runs as a process of the host.

**Restricted fields:**
- `spec.securityContext.windowsOptions.hostProcess`
- `spec.containers[*].securityContext.windowsOptions.hostProcess`

**Allowed values:** unset, `false`
"""

from webhook.predict.pod_security.checks import Result, Revision, refusal, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import SecurityContext
from webhook.predict.pod_security.subject import Subject

ID = "windowsHostProcess"
FIELD = "securityContext.windowsOptions.hostProcess"


def is_no_host_process(pod: Subject) -> Result | None:
    """Neither the pod nor a container may say yes."""
    of_pod = _host_process(pod.security)
    bad = [place for place in pod.containers if _host_process(place.security)]
    return refusal(ID, "hostProcess", bad, f"must not set {FIELD}=true", FIELD, pod=of_pod)


def _host_process(context: SecurityContext) -> bool:
    return context.windows_options is not None and bool(context.windows_options.host_process)


register(ID, Level.BASELINE, Revision(Version(0), is_no_host_process))
