"""Exemptions through the validating pipeline: by policy and by annotation."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from tests.support.jobs import NO_TOKEN, changed, request
from tests.support.policies import HEADER
from webhook.admission import excuse, pipelines
from webhook.admission.pipelines import Decision, load_policy
from webhook.cluster.view import NothingKnown
from webhook.policy.exemptions import Exemption

ONE_WORKER = {**NO_TOKEN, "Worker.replicas": 1, "Launcher.template.spec.containers.0.command": ["train.sh"]}
TODAY = date(2026, 11, 21)
EXEMPT = "training.openshift.io/exempt"
REASON = "training.openshift.io/exempt-reason"


def validate(
    policy: str = "",
    annotations: Mapping[str, str] | None = None,
    *,
    username: str = "alice",
    granted: Mapping[str, bool] | None = None,
    job: Mapping[str, object] | None = None,
) -> Decision:
    sent = request(changed({**ONE_WORKER, "metadata.annotations": annotations or {}, **(job or {})}), username=username)
    return pipelines.validate(
        sent, policy=load_policy(HEADER + policy), view=NothingKnown(), today=TODAY, granted=granted
    )


def exemption(fields: str) -> str:
    return f"exemptions: [{{rules: [worker-count], reason: OPS-42, {fields}}}]"


def test_the_annotation_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []

    def asked(_: object) -> tuple[str, ...]:
        calls.append(None)
        return ("worker-count",)

    monkeypatch.setattr(excuse, "asked_rules", asked)
    decision = validate(annotations={EXEMPT: "worker-count"}, job={"Launcher.replicas": 2, "spec.slotsPerWorker": 50})
    assert len(decision.denied) > 2
    assert calls == [None]


def test_who_is_exempt_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy may have a thousand exemptions, and a review fifty findings."""
    looked_at: list[Exemption] = []
    concerns = Exemption.concerns

    def counted(self: Exemption, **request: Any) -> bool:
        looked_at.append(self)
        return concerns(self, **request)

    monkeypatch.setattr(Exemption, "concerns", counted)
    entry = "{rules: ['*'], reason: r, users: [bob]}"
    job = {"Worker.template.spec.containers": [{"name": f"c{n}", "image": "not an image"} for n in range(20)]}
    decision = validate(f"exemptions: [{', '.join([entry] * 30)}]", job=job)
    assert len(decision.denied) > 10
    assert len(looked_at) == 30


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
def test_by_policy(fields: str, username: str, exempt: bool) -> None:
    decision = validate(exemption(fields), username=username)
    assert decision.allowed is exempt
    assert [(finding.rule, reason) for finding, reason in decision.exempted] == (
        [("worker-count", "OPS-42")] if exempt else []
    )


def test_only_the_rules_that_are_named() -> None:
    decision = validate(exemption("users: [alice]"), job={"Launcher.replicas": 2})
    assert [finding.rule for finding in decision.denied] == ["upstream-contract"]
    assert validate("exemptions: [{rules: ['*'], users: [alice], reason: r}]", job={"Launcher.replicas": 2}).allowed


def test_an_expired_exemption_says_so() -> None:
    assert "(the exemption from this rule ended on 2026-11-20)" in (
        validate(exemption("users: [alice], expires: 2026-11-20")).message
    )


def test_its_use_is_in_the_audit_annotations() -> None:
    response = validate(exemption("users: [alice]")).response("u")
    assert response.audit_annotations == {"exempted": "worker-count: OPS-42"}


ASKED = {EXEMPT: "gpus, worker-count", REASON: "one-off test"}


class TestByAnnotation:
    def test_the_caller_is_told_what_to_find_out(self) -> None:
        decision = validate(annotations=ASKED)
        assert decision.requested == ["worker-count"]
        assert not decision.allowed

    @pytest.mark.parametrize("asked", ["worker-count", "*", " worker-count ,,"])
    def test_granted(self, asked: str) -> None:
        decision = validate(annotations={**ASKED, EXEMPT: asked}, granted={"worker-count": True})
        assert decision.allowed
        assert decision.response("u").audit_annotations == {"exempted": "worker-count: one-off test"}

    @pytest.mark.parametrize("granted", [{"worker-count": False}, {"worker-count": False, "gpus": True}])
    def test_not_granted(self, granted: dict[str, bool]) -> None:
        decision = validate(annotations=ASKED, granted=granted)
        assert not decision.allowed
        assert "(you are not allowed to exempt a job from this rule)" in decision.message

    def test_a_reason_is_needed(self) -> None:
        decision = validate(annotations={EXEMPT: "worker-count", REASON: " "}, granted={"worker-count": True})
        assert not decision.allowed
        assert "needs the annotation training.openshift.io/exempt-reason" in decision.message
        assert decision.requested == []

    def test_nothing_is_asked_for_rules_that_only_warn(self) -> None:
        decision = validate("rules: {worker-count: {action: warn}}", annotations=ASKED)
        assert decision.allowed
        assert decision.requested == []

    def test_nothing_is_asked_for_rules_that_are_met(self) -> None:
        assert validate(annotations={EXEMPT: "gpus", REASON: "r"}).requested == []


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("worker-count", []),
        ("*, required-injection", []),
        ("worker-cuont,gpus", ['no rule is called "worker-cuont", but worker-count']),
        ("istio", ['no rule, but an injection: "istio"; training.openshift.io/skip is for injections']),
        ("zzz", ['no rule is called "zzz"; `mpijob-webhook rules` lists them']),
        (
            "gpu,gpu,slot,zzz,4,5",
            [
                'no rule is called "gpu", but gpus; "slot", but slots; "zzz" and 2 more; `mpijob-webhook'
                " rules` lists them"
            ],
        ),
    ],
)
def test_a_name_that_is_no_rule_is_told(asked: str, told: list[str]) -> None:
    decision = validate(annotations={EXEMPT: asked, REASON: "r"}, granted={})
    assert decision.cautions == [f"{EXEMPT}: {text}" for text in told]
    assert any(EXEMPT in warning for warning in decision.warnings) == bool(told)
