"""Own rules in a running service: verdicts, faults that are told, and expressions that hold nobody up."""

import json
import threading
from math import inf
from pathlib import Path

import pytest

from tests.support import jobs
from tests.support.live_service import head, live
from tests.support.own_rules import document, rule
from webhook.cel import evaluator
from webhook.cel.engine import LATE, Engine
from webhook.kit.own_rules import Outcome
from webhook.server import reviews

GOOD = jobs.body(jobs.GOOD)
SLOW = "'" + "a" * 40 + "'.find('(a+)+b') == ''"


def policy_review(text: str) -> bytes:
    """The review of a ConfigMap with this policy."""
    metadata = {"name": "mine", "namespace": "p", "labels": {"training.openshift.io/mpijob-policy": "true"}}
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.yaml": text}}
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    request = {"uid": "1", "kind": kind, "operation": "CREATE", "namespace": "p", "name": "mine", "object": configmap}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def test_verdicts_and_what_is_told_of_faults(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    rules = (
        rule("job.workers < 4", id="few", message="too many workers", fix="Use 3 workers."),
        rule("object.spec.nothing == 'secret'", id="unguarded"),
        rule(SLOW, id="slow"),
    )
    path.write_text(document(*rules))
    # To start the worker that evaluates takes seconds on a busy machine.
    with live(policy=path, timeout_seconds=30) as service:
        for _ in range(2):
            answer = service.post("/validate-mpijob?timeout=30s", GOOD).answer
            assert [cause["message"] for cause in answer["status"]["details"]["causes"]] == [
                "too many workers. Use 3 workers. [custom/few]"
            ]
        assert answer["auditAnnotations"]["rule-faults"] == (
            'custom/unguarded: Key not found in map : "nothing";'
            " custom/slow: it takes more than 0.25 s of processor time"
        )
        assert service.metric("own_rule_faults_total", rule="custom/unguarded") == 2
        assert service.metric("own_rule_workers_ended_total") == 2, "with the others and alone; then it rests"
        assert service.metric("rule_results_total", rule="custom/few", action="deny") == 2
        told = [(line["rule"], line["fault"]) for line in service.log("own rule not evaluated")]
        assert told == [
            ("custom/unguarded", "Key not found in map : ..."),
            ("custom/slow", "it takes more than 0.25 s of processor time"),
        ]
        concern = "[!]own-rule-custom/slow: the policy's rule custom/slow could not be evaluated: it takes more than"
        assert concern in service.service.readiness.report()
        assert service.service.readiness.ready


class Stuck(Engine):
    """Does not answer until the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0
        self.end = threading.Event()

    def evaluate(self, question: bytes, seconds: float = inf) -> tuple[Outcome, ...]:
        self.begun += 1
        self.end.wait()
        return super().evaluate(question, seconds)


def test_an_engine_that_hangs_costs_own_rules_and_no_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Stuck()
    monkeypatch.setattr(evaluator, "Engine", lambda: stuck)
    path = tmp_path / "policy.yaml"
    path.write_text(document(rule("false", id="lax"), rule("true", id="strict", onError="deny")))
    with live(policy=path) as service:
        try:
            answer = service.post("/validate-mpijob?timeout=1s", GOOD).answer
        finally:
            stuck.end.set()
    assert [cause["message"] for cause in answer["status"]["details"]["causes"]] == [
        f"it cannot be found out whether the rule is kept ({LATE}). Ask your administrator: the policy says"
        " that a job is refused then. [custom/strict]"
    ]
    assert answer["auditAnnotations"]["rule-faults"] == f"custom/lax: {LATE}; custom/strict: {LATE}"


def test_what_had_no_turn_is_neither_let_through_nor_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It had no value, so with a flood of costly jobs beside it a forbidden one came in."""
    stuck = Stuck()
    monkeypatch.setattr(evaluator, "Engine", lambda: stuck)
    path = tmp_path / "policy.yaml"
    path.write_text(document(rule("false", id="lax"), rule("true", id="strict", onError="deny")))
    with live(policy=path) as service:
        try:
            costly = service.connect()
            costly.send(head("/validate-mpijob?timeout=30s", content_length=str(len(GOOD))), GOOD)
            service.wait_until(lambda: stuck.begun == 1)
            behind = service.post("/validate-mpijob?timeout=1s", GOOD)
            assert (behind.status, behind.body) == (503, b"too many reviews wait for own rules\n")
            assert service.metric("shed_total", webhook="validate") == 1
            assert service.metric("own_rule_faults_total", rule="custom/lax") == 0
        finally:
            stuck.end.set()
        assert costly.receive().answer["allowed"] is False
        costly.close()
        assert stuck.begun == 1, "nobody waits for it any more"


def test_without_its_whole_share_of_time_it_is_no_fault_of_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits long on purpose has little time left, and comes past no rule by that."""
    stuck = Stuck()
    monkeypatch.setattr(evaluator, "Engine", lambda: stuck)
    monkeypatch.setattr(reviews, "SHARE_OF_OWN_RULES", 2)  # as after a turn that came late
    path = tmp_path / "policy.yaml"
    path.write_text(document(rule("false", id="lax")))
    with live(policy=path) as service:
        try:
            response = service.post("/validate-mpijob?timeout=500ms", GOOD)
        finally:
            stuck.end.set()
        assert (response.status, response.body) == (504, b"no verdict within 0.4 s\n")


def test_a_policy_that_cannot_be_evaluated_is_refused_when_it_is_applied() -> None:
    with live() as service:
        answer = service.post("/validate-policy", policy_review(document(rule("1 + 'a' == 2")))).answer
        assert not answer["allowed"]
        assert answer["status"]["details"]["causes"][0] == {
            "reason": "FieldValueInvalid",
            "field": "data[policy.yaml].rules.custom[0].expression",
            "message": "line 1: column 3: found no matching overload for '_+_' applied to '(int, string)'",
        }
        answer = service.post("/validate-policy", policy_review(document(rule("object.spec.nothing")))).answer
        assert answer["allowed"]
        assert answer["warnings"] == [
            "rules.custom[0].expression: a usual job gives it no value, such a job is let through:"
            ' Key not found in map : "nothing"'
        ]
