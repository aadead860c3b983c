"""The checks that restricted adds: what each lets through, what not, in which words and at which fields."""

from typing import Any

import pytest

from tests.support.pod_security.checks import ALL, NONE, WINDOWS, Found, containers, everywhere, found, paths
from tests.support.pod_security.volumes import SOURCES

USER_NAMESPACE = {"hostUsers": False}


def refused(who: str, where: str) -> Found:
    return "allowPrivilegeEscalation != false", f"{who} must set securityContext.allowPrivilegeEscalation=false", where


@pytest.mark.parametrize(
    ("minor", "spec", "expected"),
    [
        (7, {}, NONE),
        (8, containers({"allowPrivilegeEscalation": False}), None),
        (8, everywhere(), refused(ALL, paths("securityContext.allowPrivilegeEscalation"))),
        (
            8,
            containers({"allowPrivilegeEscalation": False}, {"allowPrivilegeEscalation": True}),
            refused('container "b"', "spec.containers[1].securityContext.allowPrivilegeEscalation"),
        ),
        (
            24,
            WINDOWS | containers(None),
            refused('container "a"', "spec.containers[0].securityContext.allowPrivilegeEscalation"),
        ),
        (25, WINDOWS | containers(None), None),
        (
            25,
            {"os": {"name": "linux"}, **containers({})},
            refused('container "a"', "spec.containers[0].securityContext.allowPrivilegeEscalation"),
        ),
    ],
)
def test_allow_privilege_escalation(minor: int, spec: dict[str, Any], expected: Found) -> None:
    assert found("allowPrivilegeEscalation", minor, spec) == expected


DROP = 'must set securityContext.capabilities.drop=["ALL"]'
DROP_FIELD = "securityContext.capabilities.drop"
ADD_FIELD = "securityContext.capabilities.add"


@pytest.mark.parametrize(
    ("minor", "contexts", "expected"),
    [
        (21, [None], NONE),
        (22, [{"drop": ["ALL"]}, {"drop": ["KILL", "ALL"], "add": ["NET_BIND_SERVICE"]}], None),
        (
            22,
            [None, {"drop": ["all"]}, {"drop": ["NET_RAW"]}],
            (
                "unrestricted capabilities",
                f'containers "a", "b", "c" {DROP}',
                " ".join(f"spec.containers[{i}].{DROP_FIELD}" for i in range(3)),
            ),
        ),
        (
            22,
            [{"drop": ["ALL"], "add": ["NET_RAW", "NET_BIND_SERVICE", "CHOWN"]}],
            (
                "unrestricted capabilities",
                f'container "a" must not include "CHOWN", "NET_RAW" in {ADD_FIELD}',
                f"spec.containers[0].{ADD_FIELD}",
            ),
        ),
        (
            25,
            [{"add": ["KILL"]}, {"add": ["CHOWN"], "drop": ["ALL"]}],
            (
                "unrestricted capabilities",
                f'container "a" {DROP}; containers "a", "b" must not include "CHOWN", "KILL" in {ADD_FIELD}',
                f"spec.containers[0].{DROP_FIELD} spec.containers[0].{ADD_FIELD} spec.containers[1].{ADD_FIELD}",
            ),
        ),
    ],
)
def test_capabilities(minor: int, contexts: list[Any], expected: Found) -> None:
    assert found("capabilities_restricted", minor, containers(*({"capabilities": it} for it in contexts))) == expected


def test_capabilities_for_windows() -> None:
    spec = WINDOWS | everywhere()
    refusal = ("unrestricted capabilities", f"{ALL} {DROP}", paths(DROP_FIELD))
    assert found("capabilities_restricted", 24, spec) == refusal
    assert found("capabilities_restricted", 25, spec) is None


@pytest.mark.parametrize(("minor", "users"), [(35, None), (35, False), (37, True)])
def test_proc_mount(minor: int, users: bool | None) -> None:
    assert found("procMount_restricted", minor, {"hostUsers": users} | containers({"procMount": "Default"})) is None
    assert found("procMount_restricted", minor, {"hostUsers": users} | containers({"procMount": "Unmasked"})) == (
        "procMount",
        'container "a" must not set securityContext.procMount to "Unmasked"',
        "spec.containers[0].securityContext.procMount",
    )


def test_no_proc_mount_of_its_own_before() -> None:
    assert found("procMount_restricted", 34, {}) == NONE


ALLOWED = {
    "none", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
    "secret",
}  # fmt: skip


@pytest.mark.parametrize("kind", SOURCES)
def test_volumes(kind: str) -> None:
    refusal = (
        "restricted volume types",
        f'volume "v" uses restricted volume type "{kind}"',
        f"spec.volumes[0].{kind}",
    )
    spec = {"volumes": [{"name": "v", **SOURCES[kind]}]}
    assert found("restrictedVolumes", 0, spec) == (None if kind in ALLOWED else refusal)


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        (None, None),
        ([{"name": "v"}, {"name": "w", "nfs": None}, {"name": "x", "inventedLater": {}}], None),
        ([{"name": "v", "nfs": {}, "secret": {}}], None),  # not that the API server would let two sources in
        (
            [{"name": "v", "nfs": {}, "hostPath": {}}, {"name": "x"}, {"name": "w", "cephfs": {}}],
            (
                "restricted volume types",
                'volumes "v", "w" use restricted volume types "cephfs", "hostPath"',
                "spec.volumes[0].hostPath spec.volumes[2].cephfs",
            ),
        ),
        (
            [{"name": "v", "nfs": {}}, {"name": "w", "nfs": {}}],
            (
                "restricted volume types",
                'volumes "v", "w" use restricted volume type "nfs"',
                "spec.volumes[0].nfs spec.volumes[1].nfs",
            ),
        ),
    ],
)
def test_several_volumes(volumes: Any, expected: Found) -> None:
    assert found("restrictedVolumes", 0, {"volumes": volumes}) == expected


ROOT = {"securityContext": {"runAsNonRoot": False}}
NON_ROOT = {"securityContext": {"runAsNonRoot": True}}
SAID = "must not set securityContext.runAsNonRoot=false"
UNSAID = "must set securityContext.runAsNonRoot=true"
FIELD = "securityContext.runAsNonRoot"


@pytest.mark.parametrize(
    ("spec", "detail", "where"),
    [
        (NON_ROOT | everywhere(), None, None),
        (everywhere(**NON_ROOT), None, None),
        (everywhere(), f"pod or {ALL} {UNSAID}", paths(FIELD)),
        (containers({"runAsNonRoot": True}, {}), f'pod or container "b" {UNSAID}', f"spec.containers[1].{FIELD}"),
        (ROOT | everywhere(**NON_ROOT), f"pod {SAID}", f"spec.{FIELD}"),
        (ROOT | everywhere(), f"pod {SAID}", f"spec.{FIELD}"),
        (ROOT | everywhere(**ROOT), f"pod and {ALL} {SAID}", f"spec.{FIELD} {paths(FIELD)}"),
        (
            NON_ROOT | containers({"runAsNonRoot": False}, None),
            f'container "a" {SAID}',
            f"spec.containers[0].{FIELD}",
        ),
        (containers({"runAsNonRoot": False}, None), f'container "a" {SAID}', f"spec.containers[0].{FIELD}"),
    ],
)
def test_run_as_non_root(spec: dict[str, Any], detail: str | None, where: str) -> None:
    expected = None if detail is None else ("runAsNonRoot != true", detail, where)
    assert found("runAsNonRoot", 0, spec) == expected
    assert found("runAsNonRoot", 34, spec | USER_NAMESPACE) == expected
    assert found("runAsNonRoot", 35, spec | {"hostUsers": True}) == expected
    assert found("runAsNonRoot", 35, spec | USER_NAMESPACE) is None


@pytest.mark.parametrize(
    ("spec", "who", "where"),
    [
        (containers(None, {"runAsUser": None}, {"runAsUser": 1}), None, None),
        ({"securityContext": {"runAsUser": 1000}}, None, None),
        ({"securityContext": {"runAsUser": 0}} | containers({"runAsUser": 1}), "pod", "spec.securityContext.runAsUser"),
        (containers({"runAsUser": 0}), 'container "a"', "spec.containers[0].securityContext.runAsUser"),
        (
            {"securityContext": {"runAsUser": 0}} | everywhere(securityContext={"runAsUser": 0}),
            f"pod and {ALL}",
            f"spec.securityContext.runAsUser {paths('securityContext.runAsUser')}",
        ),
    ],
)
def test_run_as_user(spec: dict[str, Any], who: str | None, where: str) -> None:
    expected = None if who is None else ("runAsUser=0", f"{who} must not set runAsUser=0", where)
    assert found("runAsUser", 22, spec) == NONE
    assert found("runAsUser", 23, spec) == expected
    assert found("runAsUser", 34, spec | USER_NAMESPACE) == expected
    assert found("runAsUser", 35, spec | {"hostUsers": True}) == expected
    assert found("runAsUser", 35, spec | USER_NAMESPACE) is None
