"""The checks: an example for each, and the fields that they report.

tests/conformance/test_pod_security.py compares all versions and messages with the real API server.
"""

import copy
import re
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pod_security.pods import pod
from webhook.predict.pod_security import NEWEST, Level, Result, Version, evaluate
from webhook.predict.pod_security.checks import REGISTRY
from webhook.predict.pod_security.pod import convert
from webhook.predict.pod_security.subject import Subject

Json = dict[str, Any]
APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
CONTEXT: Final = "spec.containers[0].securityContext"


def container(**context: Any) -> Json:
    return {"spec": {"containers": [{"name": "a", "securityContext": context}]}}


def run(check: str, version: Version, template: Json) -> Result | None:
    exists = REGISTRY[check].revision(version) is not None
    return REGISTRY[check].evaluate(Subject(convert(template), version)) if exists else None


@pytest.mark.parametrize(
    ("check", "template", "detail", "paths"),
    [
        ("hostNamespaces", {"spec": {"hostNetwork": True}}, "hostNetwork=true", "spec.hostNetwork"),
        (
            "hostPathVolumes",
            {"spec": {"volumes": [{"name": "v", "hostPath": {}}, {"name": "w"}]}},
            'volume "v"',
            "spec.volumes[0].hostPath",
        ),
        (
            "hostPorts",
            {"spec": {"initContainers": [{"name": "a", "ports": [{"hostPort": 90}, {"hostPort": 443}]}]}},
            'container "a" uses hostPorts 443, 90',  # sorted as text
            "spec.initContainers[0].ports[0].hostPort spec.initContainers[0].ports[1].hostPort",
        ),
        (  # the API server sets the port of the host
            "hostPorts",
            {"spec": {"hostNetwork": True, "containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}},
            'container "a" uses hostPort 80',
            "spec.containers[0].ports[0].hostPort",
        ),
        (
            "hostProbesAndHostLifecycle",
            {"spec": {"ephemeralContainers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "b"}}}]}},
            'container "a" uses probe or lifecycle host "b"',
            "spec.ephemeralContainers[0].livenessProbe.httpGet.host",
        ),
        (
            "privileged",
            container(privileged=True),
            'container "a" must not set securityContext.privileged=true',
            f"{CONTEXT}.privileged",
        ),
        (
            "capabilities_baseline",
            container(capabilities={"add": ["KILL", "NET_RAW"]}),
            'container "a" must not include "NET_RAW" in securityContext.capabilities.add',
            f"{CONTEXT}.capabilities.add",
        ),
        (
            "sysctls",
            {"spec": {"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}}},
            "kernel.msgmax",
            "spec.securityContext.sysctls[0].name",
        ),
        (
            "windowsHostProcess",
            {"spec": {"securityContext": {"windowsOptions": {"hostProcess": True}}}},
            "pod must not set securityContext.windowsOptions.hostProcess=true",
            "spec.securityContext.windowsOptions.hostProcess",
        ),
        (
            "seLinuxOptions",
            container(seLinuxOptions={"type": "spc_t", "role": "r"}),
            'container "a" set forbidden securityContext.seLinuxOptions: type "spc_t"; role may not be set',
            f"{CONTEXT}.seLinuxOptions.type {CONTEXT}.seLinuxOptions.role",
        ),
        (
            "seccompProfile_baseline",
            container(seccompProfile={"type": "Unconfined"}),
            'container "a" must not set securityContext.seccompProfile.type to "Unconfined"',
            f"{CONTEXT}.seccompProfile.type",
        ),
        (
            "appArmorProfile",
            {"metadata": {"annotations": {f"{APPARMOR}a": "unconfined"}}, **container(appArmorProfile={"type": "x"})},
            f'container "a" and annotation must not set AppArmor profile type to "x", "{APPARMOR}a="unconfined""',
            f"{CONTEXT}.appArmorProfile.type metadata.annotations[{APPARMOR}a]",
        ),
        (
            "allowPrivilegeEscalation",
            container(),
            'container "a" must set securityContext.allowPrivilegeEscalation=false',
            f"{CONTEXT}.allowPrivilegeEscalation",
        ),
        (
            "capabilities_restricted",
            container(capabilities={"add": ["KILL"]}),
            'container "a" must set securityContext.capabilities.drop=["ALL"]; '
            'container "a" must not include "KILL" in securityContext.capabilities.add',
            f"{CONTEXT}.capabilities.drop {CONTEXT}.capabilities.add",
        ),
        (
            "restrictedVolumes",
            {"spec": {"volumes": [{"name": "v", "nfs": {}}, {"name": "w", "hostPath": {}}]}},
            'volumes "v", "w" use restricted volume types "hostPath", "nfs"',
            "spec.volumes[0].nfs spec.volumes[1].hostPath",
        ),
        (
            "runAsNonRoot",
            container(),
            'pod or container "a" must set securityContext.runAsNonRoot=true',
            f"{CONTEXT}.runAsNonRoot",
        ),
        ("runAsUser", container(runAsUser=0), 'container "a" must not set runAsUser=0', f"{CONTEXT}.runAsUser"),
        (
            "seccompProfile_restricted",
            container(),
            'pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"',
            f"{CONTEXT}.seccompProfile.type",
        ),
    ],
)
def test_example(check: str, template: Json, detail: str, paths: str) -> None:
    result = run(check, NEWEST, template)
    assert result is not None
    assert (result.detail, " ".join(result.paths)) == (detail, paths)


def test_seccomp_annotations_are_checked_up_to_v1_18() -> None:
    template = {"metadata": {"annotations": {SECCOMP: "unconfined"}}}
    result = run("seccompProfile_baseline", Version(18), template)
    assert result is not None
    assert (result.detail, result.paths) == (
        f'forbidden annotation {SECCOMP}="unconfined"', (f"metadata.annotations[{SECCOMP}]",),
    )  # fmt: skip
    assert run("seccompProfile_baseline", Version(19), template) is None


@pytest.mark.parametrize(
    ("check", "minor", "users", "allowed"),
    [
        ("procMount", 34, False, False),
        ("procMount", 35, True, False),
        ("procMount", 35, None, False),
        ("procMount", 35, False, True),
        ("procMount_restricted", 35, False, False),
    ],
)
def test_proc_mount_in_a_user_namespace(check: str, minor: int, users: bool | None, allowed: bool) -> None:
    """Only a unit test can check this: the API server's validation rejects some of these pods."""
    template = container(procMount="Unmasked")
    template["spec"]["hostUsers"] = users
    result = run(check, Version(minor), template)
    assert (result is None) is allowed
    assert result is None or result.paths == (f"{CONTEXT}.procMount",)


GOOD: Final[Json] = {
    "drop": ["ALL"],
    "runAsNonRoot": True,
    "runAsUser": 1,
    "allowPrivilegeEscalation": False,
    "type": "RuntimeDefault",
}
"""Valid values by field. The function `corrected` removes other fields."""


@given(seed=st.integers(0, 2**32), minor=st.integers(0, NEWEST.minor), level=st.sampled_from([*Level]))
def test_reported_fields_are_exactly_the_fields_at_fault(seed: int, minor: int, level: Level) -> None:
    made = pod(Random(seed))
    for result in evaluate(level, Version(minor), convert(made)):
        if result.check == "hostPorts" and made["spec"].get("hostNetwork"):
            continue  # with hostNetwork, the fault is the container's port
        assert named(result, corrected(made, result.paths), minor).isdisjoint(result.paths)
        for path in result.paths:
            others = [each for each in result.paths if each != path]
            assert path in named(result, corrected(made, others), minor)


def named(result: Result, made: Json, minor: int) -> set[str]:
    again = run(result.check, Version(minor), made)
    return set() if again is None else set(again.paths)


def corrected(made: Json, paths: Any) -> Json:
    made = copy.deepcopy(made)
    for path in paths:
        *parents, last = [key or name for name, key in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", path)]
        if parents[0] == "metadata":
            del made["metadata"]["annotations"][last]
            continue
        value: Any = made
        for part in parents:
            value = value[int(part)] if isinstance(value, list) else value.setdefault(part, {})
        if last == "name":
            value["name"] = "kernel.shm_rmid_forced"
        elif last in GOOD and "seLinuxOptions" not in parents:
            value[last] = GOOD[last]
        else:
            value.pop(last, None)
    return made
