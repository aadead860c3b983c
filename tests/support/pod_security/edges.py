"""Functions that change a generated pod so that the pod just passes or just fails a check of Pod Security."""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from tests.support.pod_security.volumes import SOURCES

Pod = dict[str, Any]
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def all_containers(spec: Pod) -> list[Pod]:
    """Init containers, then containers."""
    return [*spec.get("initContainers", []), *spec["containers"]]


def _some(made: Pod, rng: Random) -> list[Pod]:
    """Security contexts of some containers."""
    return [c["securityContext"] for c in all_containers(made["spec"]) if rng.random() < 0.6]


def _contexts(made: Pod, rng: Random) -> list[Pod]:
    """Security contexts of some containers and perhaps of the pod."""
    pod_context = [made["spec"].setdefault("securityContext", {})] if rng.random() < 0.4 else []
    return pod_context + _some(made, rng)


def _set(key: str, *values: Any, of_pod: bool = False) -> Callable[[Pod, Random], None]:
    """A function that sets the field in some contexts to one of `values`. REMOVE removes the field."""

    def edge(made: Pod, rng: Random) -> None:
        for context in _contexts(made, rng) if of_pod else _some(made, rng):
            value = rng.choice(values)
            if value is REMOVE:
                context.pop(key, None)
            else:
                context[key] = deepcopy(value)  # a later change must not affect other pods

    return edge


REMOVE = object()


def _host_namespaces(made: Pod, rng: Random) -> None:
    for key in rng.sample(("hostNetwork", "hostPID", "hostIPC"), k=rng.choice((1, 1, 2, 3))):
        made["spec"][key] = rng.random() < 0.8


def _host_users(made: Pod, rng: Random) -> None:
    made["spec"]["hostUsers"] = rng.random() < 0.2


def _ports(made: Pod, rng: Random) -> None:
    number = iter(rng.sample(range(80, 20000), k=60))
    for container in all_containers(made["spec"]):
        if rng.random() < 0.6:
            given = [{"containerPort": next(number)} for _ in range(rng.choice((1, 2, 3)))]
            container["ports"] = [
                port | rng.choice(({}, {"hostPort": 0}, {"hostPort": next(number)})) for port in given
            ]


def _volumes(made: Pod, rng: Random) -> None:
    kinds = rng.sample(sorted(SOURCES), k=rng.choice((1, 1, 2, 3, 4)))
    if rng.random() < 0.3:
        kinds.append("hostPath")
    made["spec"]["volumes"] = [{"name": f"v{i}", **SOURCES[kind]} for i, kind in enumerate(kinds)]


def _handlers(made: Pod, rng: Random) -> None:
    for container in all_containers(made["spec"]):
        probed = container["name"] != "init"  # init containers that are not sidecars have no probes
        for name in PROBES if probed else ():
            if rng.random() < 0.3:
                container[name] = _handler(rng)
        if probed and rng.random() < 0.5:
            container["lifecycle"] = {name: _handler(rng) for name in rng.choice((("postStart",), ("preStop",)))}


def _handler(rng: Random) -> Pod:
    host = rng.choice(({}, {"host": ""}, {"host": "127.0.0.1"}, {"host": "example.com"}, {"host": "10.0.0.1"}))
    kind = rng.choice(("httpGet", "tcpSocket", "exec"))
    return {"exec": {"command": ["true"]}} if kind == "exec" else {kind: {"port": 80, **host}}


def _se_linux(made: Pod, rng: Random) -> None:
    types = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", "spc_t", "Container_t")
    for context in _contexts(made, rng):
        options = {"type": rng.choice(types)}
        if rng.random() < 0.2:
            options["user"] = rng.choice(("", "system_u"))
        if rng.random() < 0.2:
            options["role"] = rng.choice(("", "sysadm_r"))
        context["seLinuxOptions"] = options


def _sysctls(made: Pod, rng: Random) -> None:
    names = rng.sample(SYSCTLS, k=rng.choice((1, 1, 2, 4)))
    made["spec"].setdefault("securityContext", {})["sysctls"] = [{"name": name, "value": "1"} for name in names]


def _seccomp_annotations(made: Pod, rng: Random) -> None:
    values = ("runtime/default", "docker/default", "localhost/x", "localhost/", "unconfined", "unconfined")
    keys = [SECCOMP, *(SECCOMP_CONTAINER + name for name in ("c0", "c1", "init", "absent"))]
    made["metadata"]["annotations"] |= {key: rng.choice(values) for key in rng.sample(keys, k=rng.choice((1, 2, 3)))}


def _app_armor_annotations(made: Pod, rng: Random) -> None:
    for container in all_containers(made["spec"]):
        if rng.random() < 0.6:
            value = rng.choice(("runtime/default", "localhost/x", "unconfined", "unconfined"))
            made["metadata"]["annotations"][APPARMOR + container["name"]] = value


def _host_process(made: Pod, rng: Random) -> None:
    """Host processes need the host network, and the same setting in all containers."""
    made["spec"]["hostNetwork"] = True
    if rng.random() < 0.5:
        made["spec"].setdefault("securityContext", {})["windowsOptions"] = {"hostProcess": True}
    else:
        for container in all_containers(made["spec"]):
            container["securityContext"]["windowsOptions"] = {"hostProcess": True}


CAPABILITIES = (
    "NET_BIND_SERVICE", "CHOWN", "KILL", "MKNOD", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "chown", "CAP_KILL", "ALL",
)  # fmt: skip
SYSCTLS = (
    "kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat", "kernel.msgmax",
    "net/ipv4/tcp_syncookies", "net.core.somaxconn", "net.ipv4.tcp_keepalive_probes", "net.ipv4.ping_group_range",
)  # fmt: skip
PROFILES = ({"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "x"}, {"type": "Unconfined"})
EDGES: tuple[Callable[[Pod, Random], None], ...] = (
    _host_namespaces,
    _host_users,
    _ports,
    _volumes,
    _handlers,
    _se_linux,
    _sysctls,
    _seccomp_annotations,
    _app_armor_annotations,
    _host_process,
    _set("privileged", True, False),
    _set("allowPrivilegeEscalation", True, REMOVE),
    _set(
        "capabilities",
        REMOVE,
        {},
        {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        {"drop": ["all"]},
        {"drop": ["NET_RAW", "ALL"]},
        {"add": []},
        *({"drop": ["ALL"], "add": [name, "CHOWN"]} for name in CAPABILITIES),
        *({"add": [name]} for name in CAPABILITIES),
    ),
    _set("runAsNonRoot", True, False, REMOVE, of_pod=True),
    _set("runAsUser", 0, 1, 1000, of_pod=True),
    _set("seccompProfile", REMOVE, *PROFILES, of_pod=True),
    _set("appArmorProfile", *PROFILES, of_pod=True),
    _set("procMount", "Default", "Unmasked"),
)
WINDOWS_EDGES: tuple[Callable[[Pod, Random], None], ...] = (
    _ports,
    _volumes,
    _handlers,
    _host_process,
    _set("runAsNonRoot", True, False, REMOVE, of_pod=True),
)
