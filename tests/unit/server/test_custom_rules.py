"""Custom rules in a running service: verdicts, reported faults, and limits on slow expressions."""

import json
from pathlib import Path

import pytest

from tests.support import jobs
from tests.support.custom_rules import document, rule
from tests.support.live_service import live
from webhook.cel import limits, trial
from webhook.cel.evaluation import TOO_SLOW
from webhook.server.service import StartError

GOOD = jobs.body(jobs.GOOD)
SLOW = "object.metadata.name.split('').exists(a, [[a]].flatten().sort().distinct() == [])"


def policy_review(text: str) -> bytes:
    """The review of a ConfigMap with this policy."""
    metadata = {"name": "mine", "namespace": "p", "labels": {"training.openshift.io/mpijob-policy": "true"}}
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.yaml": text}}
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    request = {"uid": "1", "kind": kind, "operation": "CREATE", "namespace": "p", "name": "mine", "object": configmap}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def test_custom_rules_give_verdicts_and_report_faults(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    rules = (
        rule("job.workers < 4", id="few", message="too many workers", fix="Use 3 workers."),
        rule("object.spec.nothing == 'secret'", id="unguarded"),
    )
    path.write_text(document(*rules))
    with live(policy=path) as service:
        for _ in range(2):
            answer = service.post("/validate-mpijob", GOOD).answer
            assert [cause["message"] for cause in answer["status"]["details"]["causes"]] == [
                "too many workers. Use 3 workers. [custom/few]"
            ]
        assert answer["auditAnnotations"]["rule-faults"] == 'custom/unguarded: Key not found in map : "nothing"'
        assert service.metric("own_rule_faults_total", rule="custom/unguarded") == 2
        assert service.metric("rule_results_total", rule="custom/few", action="deny") == 2
        faults = [(line["rule"], line["fault"]) for line in service.log("custom rule not evaluated")]
        assert faults == [("custom/unguarded", "Key not found in map : ...")]
        concern = "[!]own-rule-custom/unguarded: the policy's rule custom/unguarded could not be evaluated: Key not"
        assert concern in service.service.readiness.report()
        assert service.service.readiness.ready


def test_too_slow_custom_rule_rejects_jobs_only_if_its_setting_on_error_is_deny(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(document(rule("job.workers < 4", id="lax"), rule("true", id="strict", onError="deny")))
    with live(policy=path) as service:
        with monkeypatch.context() as patch:
            patch.setattr(limits, "MAX_REVIEW_SECONDS", -1)
            answers = [service.post("/validate-mpijob", GOOD).answer for _ in range(2)]
        assert [[cause["message"] for cause in answer["status"]["details"]["causes"]] for answer in answers] == [
            [
                f"the rule could not be evaluated ({TOO_SLOW}). Ask your administrator: the policy rejects"
                " such jobs. [custom/strict]"
            ]
        ] * 2
        assert service.metric("own_rule_faults_total", rule="custom/lax") == 2
        assert {(line["rule"], line["fault"]) for line in service.log("custom rule not evaluated")} == {
            ("custom/lax", TOO_SLOW),
            ("custom/strict", TOO_SLOW),
        }
        (cause,) = service.post("/validate-mpijob", GOOD).answer["status"]["details"]["causes"]
        assert cause["message"].endswith("[custom/lax]"), "the rule stays in force"


def test_service_does_not_start_with_too_expensive_custom_rules(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(document(rule("true"), rule(SLOW, id="slow")))
    with pytest.raises(StartError, match=r"rules\.custom\[1\]\.expression: takes more than 50 ms"), live(policy=path):
        pass


def test_policy_review_with_too_little_time_to_try_the_rules_gets_no_verdict() -> None:
    with live() as service:
        response = service.post("/validate-policy?timeout=10ms", policy_review(document(rule("true"))))
    assert response.status == 504


def test_policy_with_an_invalid_custom_rule_is_rejected_when_applied() -> None:
    with live() as service:
        answer = service.post("/validate-policy", policy_review(document(rule("1 + 'a' == 2")))).answer
        assert not answer["allowed"]
        assert answer["status"]["details"]["causes"][0] == {
            "reason": "FieldValueInvalid",
            "field": "data[policy.yaml].rules.custom[0].expression",
            "message": "line 1: column 3: found no matching overload for '_+_' applied to '(int, string)'",
        }
        answer = service.post("/validate-policy", policy_review(document(rule(SLOW)))).answer
        assert answer["status"]["details"]["causes"][0]["message"] == f"line 1: {trial.TOO_SLOW}"
        answer = service.post("/validate-policy", policy_review(document(rule("object.spec.nothing")))).answer
        assert answer["allowed"]
        assert answer["warnings"] == [
            "rules.custom[0].expression: no value for a usual job, such a job is admitted:"
            ' Key not found in map : "nothing"'
        ]
