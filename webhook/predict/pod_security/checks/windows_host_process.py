"""No pod for Windows runs as a process of the host.

**Restricted fields:**
- `spec.securityContext.windowsOptions.hostProcess`
- `spec.containers[*].securityContext.windowsOptions.hostProcess`

**Allowed values:** unset, `false`
"""

from webhook.predict.pod_security.checks import Check, Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import SecurityContext
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import fields, setters

ID = "windowsHostProcess"


def is_no_host_process(pod: Subject) -> Result | None:
    """Neither the pod nor a container may say yes."""
    of_pod = _host_process(pod.security)
    bad = [place for place in pod.containers if _host_process(place.security)]
    if not (bad or of_pod):
        return None
    detail = f"{setters(of_pod, bad)} must not set securityContext.windowsOptions.hostProcess=true"
    return Result(ID, "hostProcess", detail, fields("securityContext.windowsOptions.hostProcess", bad, pod=of_pod))


def _host_process(context: SecurityContext) -> bool:
    return context.windows_options is not None and bool(context.windows_options.host_process)


register(Check(ID, Level.BASELINE, (Revision(Version(0), is_no_host_process),)))
