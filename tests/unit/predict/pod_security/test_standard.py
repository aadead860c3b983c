"""All Pod Security checks together. tests/conformance/test_pod_security.py compares them with the API server."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pod_security.pods import pod
from webhook.predict.pod_security import LATEST, Level, Result, Version, evaluate
from webhook.predict.pod_security.checks import REGISTRY, Check, Fault
from webhook.predict.pod_security.pod import PodTemplate, convert
from webhook.predict.pod_security.subject import Subject


def test_every_check_documents_fields_and_values() -> None:
    for check in REGISTRY.values():
        documentation = " ".join((check.run.__doc__ or "").split())
        assert "**Restricted fields" in documentation
        assert "**Allowed values:**" in documentation
        assert all(f"from v1.{minor}" in documentation for minor in check.since[1:]), check.id


@pytest.mark.parametrize(("users", "allowed"), [(False, True), (True, False), (None, False)])
def test_exempt_pods_pass_a_check(users: bool | None, allowed: bool) -> None:
    check = Check(
        "id", Level.BASELINE, (1,), lambda _: Fault("reason", "", ()), spares=lambda pod: pod.in_user_namespace
    )
    result = check.evaluate(Subject(convert({"spec": {"hostUsers": users}})))
    assert result == (None if allowed else Result("id", "reason", "", ()))


@pytest.mark.parametrize("version", [Version(36), Version(37), Version(99), LATEST])
def test_version_above_the_newest_is_replaced_by_the_newest(version: Version) -> None:
    """`newest` is the version of the API server. The default is the newest version that this service knows."""
    sysctls = [{"name": "net.ipv4.tcp_notsent_lowat"}]  # allowed since version 1.37
    template = convert({"spec": {"securityContext": {"sysctls": sysctls}}})
    assert evaluate(Level.BASELINE, version, template, newest=Version(36))
    assert bool(evaluate(Level.BASELINE, version, template)) == (version == Version(36))
    assert bool(evaluate(Level.BASELINE, version, template, newest=Version(99))) == (version == Version(36))


@pytest.mark.parametrize("template", [{}, {"metadata": None, "spec": None}, {"spec": {"containers": None}}])
def test_empty_template_has_no_violations(template: Any) -> None:
    assert evaluate(Level.RESTRICTED, LATEST, convert(template)) == []


@given(st.integers(0, 2**32), st.integers(0, 40))
def test_restricted_allows_no_more_than_baseline(seed: int, minor: int) -> None:
    template: PodTemplate = convert(pod(Random(seed)))
    restricted, baseline = (evaluate(level, Version(minor), template) for level in (Level.RESTRICTED, Level.BASELINE))
    assert restricted or not baseline
