"""The checks of baseline: what each lets through, what not, in which words and at which fields."""

from typing import Any

import pytest

from tests.support.pod_security.checks import ALL, NONE, WINDOWS, Found, containers, everywhere, found, paths

DEFAULTS = (
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT"
)
UNMASKED = containers({"procMount": "Unmasked"})
UNMASKED_FOUND = (
    "procMount",
    'container "a" must not set securityContext.procMount to "Unmasked"',
    "spec.containers[0].securityContext.procMount",
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        ({"hostNetwork": False, "hostPID": None}, None),
        ({"hostNetwork": True}, ("host namespaces", "hostNetwork=true", "spec.hostNetwork")),
        (
            {"hostIPC": True, "hostPID": True, "hostNetwork": True},
            (
                "host namespaces",
                "hostNetwork=true, hostPID=true, hostIPC=true",
                "spec.hostNetwork spec.hostPID spec.hostIPC",
            ),
        ),
    ],
)
def test_host_namespaces(spec: dict[str, Any], expected: Found) -> None:
    assert found("hostNamespaces", 0, spec) == expected


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        (None, None),
        ([{"name": "v"}, {"name": "w", "hostPath": None}, {"name": "n", "nfs": {}}], None),
        ([{"name": "v", "hostPath": {}}], ("hostPath volumes", 'volume "v"', "spec.volumes[0].hostPath")),
        (
            [{"name": "v", "hostPath": {}}, {"name": "x"}, {"name": "w", "hostPath": {"path": "/dev"}}],
            ("hostPath volumes", 'volumes "v", "w"', "spec.volumes[0].hostPath spec.volumes[2].hostPath"),
        ),
    ],
)
def test_host_path_volumes(volumes: Any, expected: Found) -> None:
    assert found("hostPathVolumes", 0, {"volumes": volumes}) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (everywhere(ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 0}]), None),
        (
            everywhere(ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 9}]),
            ("hostPort", f"{ALL} use hostPort 9", paths("ports[1].hostPort")),
        ),
        (
            {"containers": [{"name": "a", "ports": [{"hostPort": 90}, {"hostPort": 443}, {"hostPort": 90}]}]},
            (
                "hostPort",
                'container "a" uses hostPorts 443, 90',  # as text
                " ".join(f"spec.containers[0].ports[{i}].hostPort" for i in range(3)),
            ),
        ),
        (
            {"hostNetwork": True, "containers": [{"name": "a", "ports": [{"containerPort": 80}]}]},
            ("hostPort", 'container "a" uses hostPort 80', "spec.containers[0].ports[0].hostPort"),
        ),
        ({"hostNetwork": True, "containers": [{"name": "a"}, {"name": "b", "ports": [{}]}]}, None),
    ],
)
def test_host_ports(spec: dict[str, Any], expected: Found) -> None:
    assert found("hostPorts", 0, spec) == expected


PROBES = ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"]


@pytest.mark.parametrize("handler", PROBES)
@pytest.mark.parametrize("kind", ["httpGet", "tcpSocket"])
def test_host_probes(handler: str, kind: str) -> None:
    def spec(host: str | None) -> dict[str, Any]:
        fields: dict[str, Any] = {kind: {"host": host}}
        for name in reversed(handler.split(".")):
            fields = {name: fields}
        return everywhere(**fields)

    check = "hostProbesAndHostLifecycle"
    assert found(check, 34, spec(None)) is None
    assert found(check, 34, spec("")) is None
    names = 'containers "debug", "init", "main"'  # this check alone sorts them
    detail = f'{names} use probe or lifecycle host "127.0.0.1"'
    where = paths(f"{handler}.{kind}.host")
    assert found(check, 34, spec("127.0.0.1")) == ("probe or lifecycle host", detail, where)
    assert found(check, 33, spec("127.0.0.1")) == NONE


def test_host_probes_of_one_container() -> None:
    probes = {"startupProbe": {"tcpSocket": {"host": "b"}}, "livenessProbe": {"httpGet": {"host": "a"}, "exec": {}}}
    assert found("hostProbesAndHostLifecycle", 34, {"containers": [{"name": "x", **probes}]}) == (
        "probe or lifecycle host",
        'container "x" uses probe or lifecycle hosts "a", "b"',
        "spec.containers[0].livenessProbe.httpGet.host spec.containers[0].startupProbe.tcpSocket.host",
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (containers(None, {}, {"privileged": False}), None),
        (
            containers({"privileged": True}),
            (
                "privileged",
                'container "a" must not set securityContext.privileged=true',
                "spec.containers[0].securityContext.privileged",
            ),
        ),
        (
            everywhere(securityContext={"privileged": True}),
            (
                "privileged",
                f"{ALL} must not set securityContext.privileged=true",
                paths("securityContext.privileged"),
            ),
        ),
    ],
)
def test_privileged(spec: dict[str, Any], expected: Found) -> None:
    assert found("privileged", 0, spec) == expected


@pytest.mark.parametrize(
    ("minor", "spec", "expected"),
    [
        (0, containers(None, {"procMount": None}, {"procMount": "Default"}), None),
        (0, UNMASKED, UNMASKED_FOUND),
        (34, UNMASKED | {"hostUsers": False}, UNMASKED_FOUND),
        (35, UNMASKED, UNMASKED_FOUND),
        (35, UNMASKED | {"hostUsers": True}, UNMASKED_FOUND),
        (35, UNMASKED | {"hostUsers": False}, None),
        (
            0,
            everywhere(securityContext={"procMount": ""}),
            (
                "procMount",
                f'{ALL} must not set securityContext.procMount to ""',
                paths("securityContext.procMount"),
            ),
        ),
    ],
)
def test_proc_mount(minor: int, spec: dict[str, Any], expected: Found) -> None:
    assert found("procMount", minor, spec) == expected


@pytest.mark.parametrize("name", DEFAULTS.split())
def test_default_capabilities(name: str) -> None:
    assert found("capabilities_baseline", 0, everywhere(securityContext={"capabilities": {"add": [name]}})) is None


@pytest.mark.parametrize("name", ["NET_RAW", "IPC_LOCK", "SYS_ADMIN", "ALL", "chown", "CAP_CHOWN", ""])
def test_other_capabilities(name: str) -> None:
    assert found("capabilities_baseline", 0, everywhere(securityContext={"capabilities": {"add": ["KILL", name]}})) == (
        "non-default capabilities",
        f'{ALL} must not include "{name}" in securityContext.capabilities.add',
        paths("securityContext.capabilities.add"),
    )


def test_capabilities_of_several_containers() -> None:
    added = [None, {"add": ["SYS_TIME", "IPC_LOCK"]}, {"add": ["SYS_TIME"], "drop": ["ALL"]}]
    assert found("capabilities_baseline", 0, containers(*({"capabilities": it} for it in added))) == (
        "non-default capabilities",
        'containers "b", "c" must not include "IPC_LOCK", "SYS_TIME" in securityContext.capabilities.add',
        "spec.containers[1].securityContext.capabilities.add spec.containers[2].securityContext.capabilities.add",
    )


@pytest.mark.parametrize(
    ("since", "names"),
    [
        (
            0,
            "kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.tcp_syncookies net.ipv4.ping_group_range"
            " net.ipv4.ip_unprivileged_port_start",
        ),
        (27, "net.ipv4.ip_local_reserved_ports"),
        (
            29,
            "net.ipv4.tcp_keepalive_time net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl"
            " net.ipv4.tcp_keepalive_probes",
        ),
        (32, "net.ipv4.tcp_rmem net.ipv4.tcp_wmem"),
        (37, "net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_notsent_lowat"),
    ],
)
def test_sysctls(since: int, names: str) -> None:
    for name in names.split():
        spec = {"securityContext": {"sysctls": [{"name": name}]}}
        assert found("sysctls", since, spec) is None
        if since:
            forbidden = ("forbidden sysctls", name, "spec.securityContext.sysctls[0].name")
            assert found("sysctls", since - 1, spec) == forbidden


def test_several_sysctls() -> None:
    names = ["kernel.msgmax", "net.ipv4.tcp_syncookies", "b", "a"]
    assert found("sysctls", 37, {"securityContext": {"sysctls": [{"name": name} for name in names]}}) == (
        "forbidden sysctls",
        "kernel.msgmax, b, a",
        " ".join(f"spec.securityContext.sysctls[{i}].name" for i in (0, 2, 3)),
    )


HOST_PROCESS = {"windowsOptions": {"hostProcess": True}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (containers(None, {"windowsOptions": None}, {"windowsOptions": {"hostProcess": False}}), None),
        (
            {"securityContext": HOST_PROCESS, **everywhere(securityContext=HOST_PROCESS)},
            (
                "hostProcess",
                f"pod and {ALL} must not set securityContext.windowsOptions.hostProcess=true",
                "spec.securityContext.windowsOptions.hostProcess "
                + paths("securityContext.windowsOptions.hostProcess"),
            ),
        ),
        (
            WINDOWS | {"securityContext": HOST_PROCESS},
            (
                "hostProcess",
                "pod must not set securityContext.windowsOptions.hostProcess=true",
                "spec.securityContext.windowsOptions.hostProcess",
            ),
        ),
    ],
)
def test_windows_host_process(spec: dict[str, Any], expected: Found) -> None:
    assert found("windowsHostProcess", 0, spec) == expected
