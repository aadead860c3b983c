"""All capabilities are dropped; only NET_BIND_SERVICE may be added back.

**Restricted fields:**
- `spec.containers[*].securityContext.capabilities.drop`

**Allowed values:** any list with `ALL`; from v1.25 anything in pods for Windows

**Restricted fields:**
- `spec.containers[*].securityContext.capabilities.add`

**Allowed values:** unset, `NET_BIND_SERVICE`; from v1.25 anything in pods for Windows
"""

from webhook.predict.pod_security.checks import Result, Revision, capabilities_baseline, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import Capabilities
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import containers, fields, quoted

ID = "capabilities_restricted"
ALLOWED = frozenset({"NET_BIND_SERVICE"})
OVERRIDES = (capabilities_baseline.ID,)
_UNSET = Capabilities()


def drops_all(pod: Subject) -> Result | None:
    """Drop and add have a sentence each."""
    keeping, adding, added = [], [], set()
    for place in pod.containers:
        capabilities = place.security.capabilities or _UNSET
        if "ALL" not in (capabilities.drop or ()):
            keeping.append(place)
        if capabilities.add and (others := set(capabilities.add) - ALLOWED):
            adding.append(place)
            added |= others
    details = []
    if keeping:
        details.append(f'{containers(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        what = quoted(sorted(added))
        details.append(f"{containers(adding)} must not include {what} in securityContext.capabilities.add")
    if not details:
        return None
    return Result(
        ID,
        "unrestricted capabilities",
        "; ".join(details),
        fields("securityContext.capabilities.drop", keeping) + fields("securityContext.capabilities.add", adding),
    )


register(
    ID,
    Level.RESTRICTED,
    Revision(Version(22), drops_all, OVERRIDES),
    Revision(Version(25), drops_all, OVERRIDES, spares=lambda pod: pod.for_windows),
)
