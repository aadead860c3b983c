"""The whole standard: levels, versions and order of the checks, `evaluate`, and messages."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pod_security.pods import compliant_pod, pod
from webhook.predict.pod_security import (
    LATEST,
    NEWEST,
    Level,
    LevelVersion,
    Result,
    Version,
    evaluate,
    messages,
)
from webhook.predict.pod_security.checks import REGISTRY, Check, Fault, checks, refusal
from webhook.predict.pod_security.pod import PodTemplate, convert
from webhook.predict.pod_security.subject import Subject

BASELINE = {
    "appArmorProfile": [0],
    "capabilities_baseline": [0],
    "hostNamespaces": [0],
    "hostPathVolumes": [0],
    "hostPorts": [0],
    "hostProbesAndHostLifecycle": [34],
    "privileged": [0],
    "procMount": [0, 35],
    "seLinuxOptions": [0, 31],
    "seccompProfile_baseline": [0, 19],
    "sysctls": [0, 27, 29, 32, 37],
    "windowsHostProcess": [0],
}
RESTRICTED = {
    "allowPrivilegeEscalation": [8, 25],
    "capabilities_restricted": [22, 25],
    "procMount_restricted": [35],
    "restrictedVolumes": [0],
    "runAsNonRoot": [0, 35],
    "runAsUser": [23, 35],
    "seccompProfile_restricted": [19, 25],
}


def test_ids_levels_and_versions_of_all_checks() -> None:
    for level, expected in ((Level.BASELINE, BASELINE), (Level.RESTRICTED, RESTRICTED)):
        versions = {key: [*check.since] for key, check in REGISTRY.items() if check.level == level}
        assert list(versions.items()) == list(expected.items())
    assert [*REGISTRY] == sorted(REGISTRY)
    assert max(minor for check in REGISTRY.values() for minor in check.since) == NEWEST.minor


def test_every_check_documents_fields_and_values() -> None:
    for check in REGISTRY.values():
        documentation = " ".join((check.run.__doc__ or "").split())
        assert "**Restricted fields" in documentation
        assert "**Allowed values:**" in documentation
        assert all(f"from v1.{minor}" in documentation for minor in check.since[1:]), check.id


def test_fault_names_subjects_and_fields() -> None:
    subject = Subject(convert({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}))
    assert refusal("reason", [], "must not", "field") is None
    assert refusal("reason", [], "must not", "field", pod=True) == Fault("reason", "pod must not", ("spec.field",))
    assert refusal("reason", subject.containers[1:], "must not", "field", pod=True) == Fault(
        "reason", 'pod and container "b" must not', ("spec.field", "spec.containers[1].field")
    )


@pytest.mark.parametrize(("users", "allowed"), [(False, True), (True, False), (None, False)])
def test_exempt_pods_pass_a_check(users: bool | None, allowed: bool) -> None:
    check = Check(
        "id", Level.BASELINE, (1,), lambda _: Fault("reason", "", ()), spares=lambda pod: pod.in_user_namespace
    )
    result = check.evaluate(Subject(convert({"spec": {"hostUsers": users}})))
    assert result == (None if allowed else Result("id", "reason", "", ()))


@pytest.mark.parametrize(
    ("minor", "missing", "added"),
    [
        (0, {"hostPathVolumes"}, {"restrictedVolumes", "runAsNonRoot"}),
        (8, set(), {"allowPrivilegeEscalation"}),
        (19, {"seccompProfile_baseline"}, {"seccompProfile_restricted"}),
        (22, {"capabilities_baseline"}, {"capabilities_restricted"}),
        (23, set(), {"runAsUser"}),
        (34, set(), {"hostProbesAndHostLifecycle"}),
        (35, {"procMount"}, {"procMount_restricted"}),
    ],
)
def test_restricted_replaces_checks_of_baseline(minor: int, missing: set[str], added: set[str]) -> None:
    """The differences between a version of restricted and the version before."""
    before = set(checks(Level.RESTRICTED, Version(minor - 1))) if minor else set(checks(Level.BASELINE, Version(0)))
    now = set(checks(Level.RESTRICTED, Version(minor)))
    assert (before - now, now - before) == (missing, added)


def test_checks_are_in_the_order_of_kubernetes() -> None:
    assert list(checks(Level.BASELINE, NEWEST)) == list(BASELINE)
    replaced = {"capabilities_baseline", "hostPathVolumes", "procMount", "seccompProfile_baseline"}
    assert list(checks(Level.RESTRICTED, NEWEST)) == [key for key in BASELINE if key not in replaced] + list(RESTRICTED)
    assert checks(Level.PRIVILEGED, NEWEST) == {}


BAD: dict[str, Any] = {
    "spec": {
        "hostPID": True,
        "securityContext": {"sysctls": [{"name": "net.ipv4.tcp_notsent_lowat"}]},
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
        "containers": [{"name": "a", "securityContext": {"privileged": True}}],
    }
}


def ids(results: list[Result]) -> list[str]:
    return [result.check for result in results]


def test_evaluate() -> None:
    template = convert(BAD)
    assert evaluate(Level.PRIVILEGED, LATEST, template) == []
    assert ids(evaluate(Level.BASELINE, Version(36), template)) == [
        "hostNamespaces",
        "hostPathVolumes",
        "privileged",
        "sysctls",
    ]
    assert ids(evaluate(Level.RESTRICTED, LATEST, template)) == [
        "hostNamespaces",
        "privileged",
        "allowPrivilegeEscalation",
        "capabilities_restricted",
        "restrictedVolumes",
        "runAsNonRoot",
        "seccompProfile_restricted",
    ]
    assert evaluate(Level.RESTRICTED, LATEST, convert(compliant_pod(Random(1)))) == []


@pytest.mark.parametrize("version", [Version(36), Version(37), Version(99), LATEST])
def test_versions_above_the_newest(version: Version) -> None:
    """The API server uses its own version, `newest`, for later ones. By default, `newest` is the newest known one."""
    template = convert(BAD)
    assert "sysctls" in ids(evaluate(Level.BASELINE, version, template, newest=Version(36)))
    assert ("sysctls" in ids(evaluate(Level.BASELINE, version, template))) == (version == Version(36))
    assert ("sysctls" in ids(evaluate(Level.BASELINE, version, template, newest=Version(99)))) == (version.minor == 36)


def test_messages() -> None:
    results = evaluate(Level.BASELINE, Version(20), convert(BAD))[:3]
    text = 'host namespaces (hostPID=true), hostPath volumes (volume "v"), '
    text += 'privileged (container "a" must not set securityContext.privileged=true)'
    policy = LevelVersion(Level.BASELINE, Version(20))
    assert messages.details(results) == text
    assert messages.denial(policy, results) == f'violates PodSecurity "baseline:v1.20": {text}'
    assert messages.warning(policy, results) == f'would violate PodSecurity "baseline:v1.20": {text}'


def test_message_without_detail() -> None:
    unnamed = convert({"spec": {"securityContext": {"sysctls": [{"value": "1"}]}}})
    assert messages.details(evaluate(Level.BASELINE, LATEST, unnamed)) == "forbidden sysctls"


@pytest.mark.parametrize("template", [{}, {"metadata": None, "spec": None}, {"spec": {"containers": None}}])
def test_empty_template_has_no_violations(template: Any) -> None:
    assert evaluate(Level.RESTRICTED, LATEST, convert(template)) == []


@given(st.integers(0, 2**32), st.integers(0, 40))
def test_restricted_allows_no_more_than_baseline(seed: int, minor: int) -> None:
    template: PodTemplate = convert(pod(Random(seed)))
    restricted, baseline = (evaluate(level, Version(minor), template) for level in (Level.RESTRICTED, Level.BASELINE))
    assert restricted or not baseline
