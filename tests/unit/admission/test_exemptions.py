"""Exemptions by policy and by annotation, in the validating pipeline."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from tests.support.jobs import NO_TOKEN, changed
from tests.support.rule_checks import decide
from webhook.admission.pipelines import Decision

ONE_WORKER = {**NO_TOKEN, "Worker.replicas": 1, "Launcher.template.spec.containers.0.command": ["train.sh"]}
TODAY = date(2026, 11, 21)
EXEMPT = "training.openshift.io/exempt"
REASON = "training.openshift.io/exempt-reason"


def validate(
    policy: str = "",
    annotations: Mapping[str, str] | None = None,
    *,
    job: Mapping[str, object] | None = None,
    **sent: Any,
) -> Decision:
    changes = {**ONE_WORKER, "metadata.annotations": annotations or {}, **(job or {})}
    return decide(changed(changes), policy, today=TODAY, **sent)


def exemption(fields: str) -> str:
    return f"exemptions: [{{rules: [worker-count], reason: OPS-42, {fields}}}]"


@pytest.mark.parametrize(
    ("fields", "username", "exempt"),
    [
        ("users: [alice]", "alice", True),
        ("users: [bob]", "alice", False),
        ("groups: ['system:authenticated']", "alice", True),
        ("groups: [admins]", "alice", False),
        ("namespaces: [team-a]", "alice", True),
        ("namespaces: [team-b]", "alice", False),
        ("namespaces: [team-b], users: [alice]", "alice", False),
        ("namespaces: [team-a], users: [bob]", "alice", False),
        ("serviceAccounts: [ops/ci]", "system:serviceaccount:ops:ci", True),
        ("serviceAccounts: [ops/ci]", "system:serviceaccount:ops:cd", False),
        ("serviceAccounts: [ops/ci]", "ops/ci", False),
        ("users: [alice], expires: 2026-11-21", "alice", True),
        ("users: [alice], expires: 2026-11-20", "alice", False),
    ],
)
def test_exemption_of_a_policy_applies_if_all_its_fields_match(fields: str, username: str, exempt: bool) -> None:
    decision = validate(exemption(fields), username=username)
    assert decision.allowed is exempt
    assert [(finding.rule, reason) for finding, reason in decision.exempted] == (
        [("worker-count", "OPS-42")] if exempt else []
    )


def test_exemption_applies_only_to_named_rules() -> None:
    decision = validate(exemption("users: [alice]"), job={"Launcher.replicas": 2})
    assert [finding.rule for finding in decision.denied] == ["upstream-contract"]
    assert validate("exemptions: [{rules: ['*'], users: [alice], reason: r}]", job={"Launcher.replicas": 2}).allowed


def test_expired_exemption_is_reported() -> None:
    assert "(the exemption from this rule ended on 2026-11-20)" in (
        validate(exemption("users: [alice], expires: 2026-11-20")).message
    )


def test_used_exemption_is_in_the_audit_annotations() -> None:
    response = validate(exemption("users: [alice]")).response("u")
    assert response.audit_annotations == {"exempted": "worker-count: OPS-42"}


REQUEST = {EXEMPT: "gpus, worker-count", REASON: "one-off test"}


class TestByAnnotation:
    """A user needs a right in RBAC to request exemptions by annotation. The service queries the right for each rule."""

    def test_decision_names_the_rules_whose_exemption_must_be_queried(self) -> None:
        decision = validate(annotations=REQUEST)
        assert decision.requested == ["worker-count"]
        assert not decision.allowed

    @pytest.mark.parametrize("rules", ["worker-count", "*", " worker-count ,,"])
    def test_violation_is_exempted_if_the_right_is_granted(self, rules: str) -> None:
        decision = validate(annotations={**REQUEST, EXEMPT: rules}, granted={"worker-count": True})
        assert decision.allowed
        assert decision.response("u").audit_annotations == {"exempted": "worker-count: one-off test"}

    @pytest.mark.parametrize("granted", [{"worker-count": False}, {"worker-count": False, "gpus": True}])
    def test_violation_is_rejected_if_the_right_is_missing(self, granted: dict[str, bool]) -> None:
        decision = validate(annotations=REQUEST, granted=granted)
        assert not decision.allowed
        assert "(you are not allowed to exempt a job from this rule)" in decision.message

    def test_exemption_without_a_reason_is_ignored(self) -> None:
        decision = validate(annotations={EXEMPT: "worker-count", REASON: " "}, granted={"worker-count": True})
        assert not decision.allowed
        assert "needs the annotation training.openshift.io/exempt-reason" in decision.message
        assert decision.requested == []

    def test_exemption_is_not_queried_for_rules_that_only_warn(self) -> None:
        decision = validate("rules: {worker-count: {action: warn}}", annotations=REQUEST)
        assert decision.allowed
        assert decision.requested == []

    def test_exemption_is_not_queried_for_rules_that_are_met(self) -> None:
        assert validate(annotations={EXEMPT: "gpus", REASON: "r"}).requested == []


@pytest.mark.parametrize(
    ("rules", "cautions"),
    [
        ("worker-count", []),
        ("*, required-injection", []),
        ("worker-cuont,gpus", ['no rule is called "worker-cuont"; did you mean worker-count?']),
        ("istio", ['"istio" is an injection; use the annotation training.openshift.io/skip']),
        ("zzz", ['no rule is called "zzz"; `mpijob-webhook rules` lists them']),
        (
            "gpu,gpu,slot,zzz,4,5",
            [
                'no rule is called "gpu", "slot", "zzz" and 2 more; did you mean gpus and slots?'
                " `mpijob-webhook rules` lists them"
            ],
        ),
    ],
)
def test_unknown_rule_name_is_reported(rules: str, cautions: list[str]) -> None:
    decision = validate(annotations={EXEMPT: rules, REASON: "r"}, granted={})
    assert decision.cautions == [f"{EXEMPT}: {text}" for text in cautions]
    assert any(EXEMPT in warning for warning in decision.warnings) == bool(cautions)
