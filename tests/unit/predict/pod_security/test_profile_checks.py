"""The checks of SELinux, seccomp and AppArmor: what each lets through, what not, in which words and at which fields."""

from typing import Any

import pytest

from tests.support.pod_security.checks import ALL, NONE, WINDOWS, Found, containers, everywhere, found, paths

CONFINED = {"seccompProfile": {"type": "RuntimeDefault"}}
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_A = "container.seccomp.security.alpha.kubernetes.io/a"


@pytest.mark.parametrize(
    ("minor", "kind", "allowed"),
    [
        (0, None, True),
        (0, "", True),
        (0, "container_t", True),
        (0, "container_init_t", True),
        (0, "container_kvm_t", True),
        (30, "container_engine_t", False),
        (31, "container_engine_t", True),
        (31, "container_t", True),
        (31, "spc_t", False),
    ],
)
def test_se_linux_types(minor: int, kind: str | None, allowed: bool) -> None:
    found_now = found("seLinuxOptions", minor, {"securityContext": {"seLinuxOptions": {"type": kind}}})
    detail = f'pod set forbidden securityContext.seLinuxOptions: type "{kind}"'
    assert found_now == (None if allowed else ("seLinuxOptions", detail, "spec.securityContext.seLinuxOptions.type"))


@pytest.mark.parametrize(
    ("spec", "detail", "where"),
    [
        (
            everywhere(securityContext={"seLinuxOptions": {"user": "u"}}),
            f"{ALL} set forbidden securityContext.seLinuxOptions: user may not be set",
            paths("securityContext.seLinuxOptions.user"),
        ),
        (
            {
                "securityContext": {"seLinuxOptions": {"type": "y", "role": "r"}},
                **containers({"seLinuxOptions": {"type": "x", "user": "u"}}, {"seLinuxOptions": {"user": ""}}),
            },
            'pod and container "a" set forbidden securityContext.seLinuxOptions: types "x", "y";'
            " user may not be set; role may not be set",
            "spec.securityContext.seLinuxOptions.type spec.securityContext.seLinuxOptions.role"
            " spec.containers[0].securityContext.seLinuxOptions.type"
            " spec.containers[0].securityContext.seLinuxOptions.user",
        ),
    ],
)
def test_se_linux_options(spec: dict[str, Any], detail: str, where: str) -> None:
    assert found("seLinuxOptions", 0, spec) == ("seLinuxOptions", detail, where)


@pytest.mark.parametrize("value", ["runtime/default", "docker/default", "localhost/", "localhost/x"])
def test_seccomp_annotations(value: str) -> None:
    assert found("seccompProfile_baseline", 18, containers(None), {SECCOMP: value, SECCOMP_A: value}) is None


@pytest.mark.parametrize(
    ("annotations", "detail", "where"),
    [
        ({SECCOMP: ""}, f'forbidden annotation {SECCOMP}=""', f"metadata.annotations[{SECCOMP}]"),
        (
            {SECCOMP: "unconfined", SECCOMP_A: "a\tb", SECCOMP_A + "bsent": "unconfined"},
            f'forbidden annotations {SECCOMP_A}="a\\tb", {SECCOMP}="unconfined"',
            f"metadata.annotations[{SECCOMP_A}] metadata.annotations[{SECCOMP}]",
        ),
    ],
)
def test_forbidden_seccomp_annotations(annotations: dict[str, str], detail: str, where: str) -> None:
    assert found("seccompProfile_baseline", 18, containers(None), annotations) == ("seccompProfile", detail, where)
    assert found("seccompProfile_baseline", 19, containers(None), annotations) is None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (containers(None, {"seccompProfile": {"type": "Localhost"}}, {"seccompProfile": None}), None),
        ({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}, None),
        (
            everywhere(securityContext={"seccompProfile": {"type": "Unconfined"}}),
            (
                "seccompProfile",
                f'{ALL} must not set securityContext.seccompProfile.type to "Unconfined"',
                paths("securityContext.seccompProfile.type"),
            ),
        ),
        (
            {"securityContext": {"seccompProfile": {}}, **containers({"seccompProfile": {"type": "Unconfined"}})},
            (
                "seccompProfile",
                'pod and container "a" must not set securityContext.seccompProfile.type to "", "Unconfined"',
                "spec.securityContext.seccompProfile.type spec.containers[0].securityContext.seccompProfile.type",
            ),
        ),
    ],
)
def test_seccomp_fields(spec: dict[str, Any], expected: Found) -> None:
    assert found("seccompProfile_baseline", 19, spec) == expected
    assert found("seccompProfile_baseline", 18, spec) is None


@pytest.mark.parametrize(
    ("minor", "spec", "expected"),
    [
        (18, {}, NONE),
        (19, {"securityContext": CONFINED, **containers(None, {}, CONFINED)}, None),
        (19, containers(CONFINED, {"seccompProfile": {"type": "Localhost"}}), None),
        (
            19,
            everywhere(),
            (
                "seccompProfile",
                f'pod or {ALL} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"',
                paths("securityContext.seccompProfile.type"),
            ),
        ),
        (
            24,
            WINDOWS | containers(CONFINED, None),
            (
                "seccompProfile",
                'pod or container "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"',
                "spec.containers[1].securityContext.seccompProfile.type",
            ),
        ),
        (25, WINDOWS | containers(None), None),
        (
            25,
            {
                "os": {"name": "linux"},
                "securityContext": {"seccompProfile": {"type": "Unconfined"}},
                **containers(None),
            },
            (
                "seccompProfile",
                'pod must not set securityContext.seccompProfile.type to "Unconfined"',
                "spec.securityContext.seccompProfile.type",
            ),
        ),
    ],
)
def test_seccomp_restricted(minor: int, spec: dict[str, Any], expected: Found) -> None:
    assert found("seccompProfile_restricted", minor, spec) == expected


UNCONFINED = {"appArmorProfile": {"type": "Unconfined"}}
ANNOTATED = f'{APPARMOR}a="unconfined"'


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        (containers(None, {"appArmorProfile": {"type": "Localhost"}}), {}, None),
        ({"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}, {}, None),
        (containers(None), {APPARMOR + "a": "", APPARMOR + "b": "localhost/x", APPARMOR: "runtime/default"}, None),
        (
            {"securityContext": UNCONFINED, **everywhere(securityContext={"appArmorProfile": {}})},
            {},
            (
                "forbidden AppArmor profiles",
                f'pod and {ALL} must not set AppArmor profile type to "", "Unconfined"',
                "spec.securityContext.appArmorProfile.type " + paths("securityContext.appArmorProfile.type"),
            ),
        ),
        (
            containers(UNCONFINED),
            {},
            (
                "forbidden AppArmor profile",
                'container "a" must not set AppArmor profile type to "Unconfined"',
                "spec.containers[0].securityContext.appArmorProfile.type",
            ),
        ),
        (  # the API server sets the field from the annotation before it judges
            containers(None),
            {APPARMOR + "a": "unconfined"},
            (
                "forbidden AppArmor profiles",
                f'container "a" and annotation must not set AppArmor profile type to "Unconfined", "{ANNOTATED}"',
                f"metadata.annotations[{APPARMOR}a]",
            ),
        ),
        (  # not where the pod says so already
            {"securityContext": UNCONFINED, **containers(None)},
            {APPARMOR + "a": "unconfined"},
            (
                "forbidden AppArmor profiles",
                f'pod and annotation must not set AppArmor profile type to "Unconfined", "{ANNOTATED}"',
                f"spec.securityContext.appArmorProfile.type metadata.annotations[{APPARMOR}a]",
            ),
        ),
        (  # nor for Windows, nor where the container has a profile
            WINDOWS | containers(None),
            {APPARMOR + "a": "unconfined"},
            (
                "forbidden AppArmor profile",
                f'annotation must not set AppArmor profile type to "{ANNOTATED}"',
                f"metadata.annotations[{APPARMOR}a]",
            ),
        ),
        (
            containers({"appArmorProfile": {"type": "RuntimeDefault"}}),
            {APPARMOR + "a": "unconfined", APPARMOR + "Z": 'x"y', "other": "unconfined"},
            (
                "forbidden AppArmor profiles",
                f'annotations must not set AppArmor profile type to "{APPARMOR}Z="x\\"y"", "{ANNOTATED}"',
                f"metadata.annotations[{APPARMOR}Z] metadata.annotations[{APPARMOR}a]",
            ),
        ),
    ],
)
def test_app_armor(spec: dict[str, Any], annotations: dict[str, str], expected: Found) -> None:
    assert found("appArmorProfile", 0, spec, annotations) == expected
