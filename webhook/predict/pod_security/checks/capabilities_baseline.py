"""No capabilities beyond those that container runtimes give by default, less NET_RAW.

**Restricted fields:**
- `spec.containers[*].securityContext.capabilities.add`

**Allowed values:** unset, `AUDIT_WRITE`, `CHOWN`, `DAC_OVERRIDE`, `FOWNER`, `FSETID`, `KILL`, `MKNOD`,
`NET_BIND_SERVICE`, `SETFCAP`, `SETGID`, `SETPCAP`, `SETUID`, `SYS_CHROOT`
"""

from webhook.predict.pod_security.checks import Result, Revision, refusal, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import quoted

ID = "capabilities_baseline"
FIELD = "securityContext.capabilities.add"
ALLOWED = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
        "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip


def adds_default_capabilities(pod: Subject) -> Result | None:
    """Names are compared as they are written: `sys_admin` or `CAP_KILL` is no default either."""
    bad, added = [], set()
    for place in pod.containers:
        capabilities = place.security.capabilities
        if capabilities is not None and capabilities.add and (others := set(capabilities.add) - ALLOWED):
            bad.append(place)
            added |= others
    fault = f"must not include {quoted(sorted(added))} in {FIELD}"
    return refusal(ID, "non-default capabilities", bad, fault, FIELD)


register(ID, Level.BASELINE, Revision(Version(0), adds_default_capabilities))
