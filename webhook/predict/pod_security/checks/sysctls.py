"""Only kernel parameters that concern the pod alone are set.

**Restricted fields:**
- `spec.securityContext.sysctls[*].name`

**Allowed values:** `kernel.shm_rmid_forced`, `net.ipv4.ip_local_port_range`, `net.ipv4.tcp_syncookies`,
`net.ipv4.ping_group_range`, `net.ipv4.ip_unprivileged_port_start`; from v1.27 `net.ipv4.ip_local_reserved_ports`; from
v1.29 `net.ipv4.tcp_keepalive_time`, `net.ipv4.tcp_fin_timeout`, `net.ipv4.tcp_keepalive_intvl`,
`net.ipv4.tcp_keepalive_probes`; from v1.32 `net.ipv4.tcp_rmem`, `net.ipv4.tcp_wmem`; from v1.37
`net.ipv4.tcp_slow_start_after_idle`, `net.ipv4.tcp_notsent_lowat`
"""

from collections.abc import Callable

from webhook.predict.pod_security.checks import Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject

ID = "sysctls"
ADDED = {
    0: (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ),
    27: ("net.ipv4.ip_local_reserved_ports",),
    29: (
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ),
    32: ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    37: ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"),
}


def _sets_only(allowed: frozenset[str]) -> Callable[[Subject], Result | None]:
    def check(pod: Subject) -> Result | None:
        given = [(index, sysctl.name or "") for index, sysctl in enumerate(pod.security.sysctls or ())]
        bad = [(index, name) for index, name in given if name not in allowed]
        if not bad:
            return None
        paths = tuple(f"spec.securityContext.sysctls[{index}].name" for index, _ in bad)
        return Result(ID, "forbidden sysctls", ", ".join(name for _, name in bad), paths)

    return check


def _revision(minor: int) -> Revision:
    allowed = frozenset(name for since, names in ADDED.items() if since <= minor for name in names)
    return Revision(Version(minor), _sets_only(allowed))


register(ID, Level.BASELINE, *map(_revision, ADDED))
