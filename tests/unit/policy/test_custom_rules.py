"""Custom rules in policy documents: syntax, merging, trial runs on usual jobs, and effects on jobs."""

import re
from typing import Any

import pytest

from tests.support import rule_checks
from tests.support.custom_rules import document, policy, rule
from tests.support.jobs import changed
from webhook.admission.decision import Decision
from webhook.cel import limits
from webhook.cel.trial import Trial, try_expressions
from webhook.kit.custom_rules import Outcome
from webhook.policy import custom_rules_check
from webhook.policy.custom_rules import mentions
from webhook.policy.document import PolicyError
from webhook.policy.in_force import Policy, PolicySet, load_policy, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import read

SLOTS = "object.spec.slotsPerWorker == 1"


def decide(active: Policy, job: Any = None, **sent: Any) -> Decision:
    return rule_checks.decide(job or changed(), active, **sent)


def denials(decision: Decision) -> list[str]:
    return [f"{finding.violation.path}: {finding.sentence}" for finding in decision.denied]


def test_job_is_rejected_with_the_message_and_fix_of_the_rule_if_the_expression_is_false() -> None:
    decision = decide(
        policy(rule(SLOTS, message="One slot each.", fix="Set slotsPerWorker to 1.", field="spec.slotsPerWorker"))
    )
    assert denials(decision) == ["spec.slotsPerWorker: One slot each. Set slotsPerWorker to 1. [custom/mine]"]


def test_rejection_shows_the_expression_if_the_rule_has_no_fix() -> None:
    assert denials(decide(policy(rule(SLOTS)))) == [f"spec: not like this. This must be true: {SLOTS} [custom/mine]"]


@pytest.mark.parametrize(("action", "fields"), [("warn", ["warned"]), ("audit", ["audited"]), ("off", [])])
def test_violation_has_the_action_of_the_rule(action: str, fields: list[str]) -> None:
    decision = decide(policy(rule(SLOTS, action=action)))
    findings = {field: getattr(decision, field) for field in ("denied", "warned", "audited")}
    assert [field for field, found in findings.items() if "custom/mine" in {each.rule for each in found}] == fields


def test_mode_of_the_policy_limits_the_action_of_the_rule() -> None:
    assert decide(policy(rule(SLOTS), mode="warn")).allowed


def test_rule_that_cannot_be_evaluated_admits_the_job_and_is_reported() -> None:
    decision = decide(policy(rule("object.spec.nothing == 1")))
    assert decision.allowed
    fault = {"custom/mine": 'Key not found in map : "nothing"'}
    assert decision.rule_faults == fault
    assert decision.response("1").audit_annotations["rule-faults"] == f"custom/mine: {fault['custom/mine']}"


def test_rule_that_cannot_be_evaluated_rejects_the_job_if_the_setting_on_error_is_deny() -> None:
    decision = decide(policy(rule("object.spec.nothing == 1", onError="deny")))
    assert denials(decision) == [
        'spec: the rule could not be evaluated (Key not found in map : "nothing").'
        " Ask your administrator: the policy rejects such jobs. [custom/mine]"
    ]


@pytest.mark.parametrize("on_error", ["skip", "deny"])
def test_job_too_large_for_custom_rules_is_rejected_regardless_of_the_setting_on_error(on_error: str) -> None:
    """Otherwise a user could avoid a rule by adding meaningless variables."""
    variables = [{"name": f"V{number}", "value": ""} for number in range(limits.MAX_JOB_VALUES // 3)]
    large = changed({"Worker.template.spec.containers.0.env": variables})
    strict = policy(rule("true", onError=on_error))
    decision = decide(strict, large)
    (denied,) = [each for each in decision.denied if each.rule == "custom/mine"]
    assert re.sub(r"1,\d{3} values", "N values", denied.violation.message) == (
        "too large for custom rules: N values, the maximum is 1,000"
    )
    assert not decision.rule_faults, "the rule is not at fault"
    updated = decide(strict, changed({"metadata.annotations": {"a": "b"}}, large), old=large)
    assert "custom/mine" not in {each.rule for each in updated.denied}


def test_rule_about_an_unknown_namespace_admits_the_job() -> None:
    decision = decide(policy(rule("namespaceObject.metadata.labels.tier == 'x'", onError="deny")))
    assert decision.allowed
    assert decision.rule_faults == {}


def test_rule_about_an_unknown_user_admits_the_job() -> None:
    only_alice = policy(rule("request.userInfo.username == 'alice'", onError="deny"))
    assert not decide(only_alice, username="bob").allowed
    unknown = decide(only_alice, username="")
    assert unknown.allowed
    assert not unknown.rule_faults


def test_expressions_read_params() -> None:
    limited = rule("job.totalGpus <= params.most && job.accelerator == 'nvidia.com/gpu'")
    assert decide(policy(limited, params={"most": 8})).allowed
    assert not decide(policy(limited, params={"most": 7})).allowed


@pytest.mark.parametrize(
    "fact",
    [
        "job.workers == 4",
        "job.gpusPerWorker == 2",
        "job.totalGpus == 8",
        "job.slots == 2",
        "job.images == ['registry.example.com/a:1', 'registry.example.com/b:1']",
        "job.accelerator == 'amd.com/gpu'",
        "job.queue == 'large'",
    ],
)
def test_expressions_read_facts_of_the_job(fact: str) -> None:
    job = changed(
        {
            "spec.slotsPerWorker": 2,
            "metadata.labels": {"kueue.x-k8s.io/queue-name": "large"},
            "Launcher.template.spec.containers.0.image": "registry.example.com/a:1",
            "Worker.template.spec.containers.0.image": "registry.example.com/b:1",
            "Worker.template.spec.containers.0.resources": {"limits": {"cpu": 1, "amd.com/gpu": 2}},
        }
    )
    met, violated = (decide(policy(rule(source)), job) for source in (fact, f"!({fact})"))
    assert "custom/mine" not in {finding.rule for finding in met.denied}
    assert not met.rule_faults
    assert "custom/mine" in {finding.rule for finding in violated.denied}


def test_update_is_rejected_only_for_a_new_violation() -> None:
    one_slot = policy(rule(SLOTS))
    assert decide(one_slot, changed({"metadata.labels": {"a": "b"}}), old=changed()).allowed
    assert not decide(one_slot, changed(), old=changed({"spec.slotsPerWorker": 1})).allowed


def test_stored_job_is_evaluated_with_its_own_facts() -> None:
    """With the facts of the new job, the stored job would violate the rule too.

    The update from 2 workers to 4 workers would then be admitted.
    """
    few = policy(rule("job.workers <= 2"))
    assert not decide(few, changed({"Worker.replicas": 4}), old=changed({"Worker.replicas": 2})).allowed
    assert decide(few, changed({"Worker.replicas": 4}), old=changed({"Worker.replicas": 3})).allowed


def test_rule_about_a_change_is_evaluated_on_each_update() -> None:
    only_admins = policy(rule("request.operation == 'CREATE' || request.userInfo.username == 'admin'"))
    assert not decide(only_admins, changed({"spec.runPolicy.backoffLimit": 3}), old=changed()).allowed
    grows = policy(rule("oldObject == null || object.spec.slotsPerWorker >= oldObject.spec.slotsPerWorker"))
    assert decide(grows, changed(), old=changed()).allowed
    assert not decide(grows, changed({"spec.slotsPerWorker": 1}), old=changed()).allowed


@pytest.mark.parametrize("rules", [["custom/mine"], ["custom"], ["*"]])
def test_exemption_from_one_rule_or_all_rules_applies(rules: list[str]) -> None:
    exemption = {"rules": rules, "users": ["alice"], "reason": "agreed"}
    decision = decide(policy(rule("false"), exemptions=[exemption]))
    assert decision.allowed
    assert "custom/mine" in [each.rule for each, _ in decision.exempted]


def test_documents_are_combined_and_the_higher_priority_wins() -> None:
    low = read(document(rule("true", id="a"), rule("true", id="b"), params={"x": 1, "y": 1}), policy_model())
    high = read(
        document(rule("false", id="b"), {"id": "c", "action": "off"}, params={"y": 2}, priority=5), policy_model()
    )
    merged = PolicySet([Layer("low", low), Layer("high", high)]).merged([0, 1])
    assert [(each.id, each.expression) for each in merged.document.custom_rules] == [
        ("a", "true"),
        ("b", "false"),
        ("c", None),
    ]
    assert merged.document.params == {"x": 1, "y": 2}
    assert merged.sources["rules.custom[b]"] == "high"
    assert merged.sources["params.x"] == "low"


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"id": "a"}, "rules.custom[0]: has no expression: only a rule with action off needs none"),
        ({"id": "a", "expression": "true"}, "rules.custom[0]: has no message: only a rule with action off needs none"),
        (rule("true", id="A"), 'rules.custom[0].id: contains "A"; allowed are lower case letters, digits and "-"'),
        (rule("t" * 2001), "rules.custom[0].expression: has 2,001 characters, the maximum is 2,000"),
        (rule(" "), "rules.custom[0].expression: must not be empty"),
        (rule("true", onError="warn"), "rules.custom[0].onError: must be skip or deny"),
    ],
)
def test_invalid_rule_is_reported_with_its_field(entry: dict[str, Any], fault: str) -> None:
    with pytest.raises(PolicyError) as error:
        load_policy(document(entry))
    assert fault in str(error.value)


def test_two_rules_with_the_same_name_are_rejected() -> None:
    with pytest.raises(PolicyError, match='two rules are called "mine"'):
        load_policy(document(rule("true"), rule("false")))


YAML = """\
apiVersion: policy.training.openshift.io/v1
kind: MPIJobPolicy
rules:
  custom:
    - id: labelled
      expression: has(object.metadata.labels.team)
      message: no team
    - id: wrong
      match: object.kind
      expression: 1 + 'a' == 2
      message: wrong
    - id: unguarded
      expression: object.metadata.labels.team == 'a'
      message: no team
"""


def test_trial_reports_the_lines_of_faults_and_warns_of_expressions_that_it_cannot_evaluate() -> None:
    tried = read(YAML, policy_model())
    sources = custom_rules_check.sources(tried)
    checked = custom_rules_check.check(tried, YAML, try_expressions(Trial(sources, tried.params)))
    assert [*map(str, checked.faults)] == [
        "line 9: rules.custom[1].match: is of the type string here",
        "line 10: rules.custom[1].expression: column 3: found no matching overload for '_+_' applied to"
        " '(int, string)'",
    ]
    assert checked.notes == (
        'rules.custom[2].expression: no value for a usual job, such a job is admitted: Key not found in map : "team"',
    )


def test_expression_that_ended_the_trial_is_reported() -> None:
    outcomes = [Outcome(), Outcome(fault="takes too much", written_wrong=True)]
    checked = custom_rules_check.check(read(YAML, policy_model()), YAML, outcomes)
    assert [*map(str, checked.faults)] == ["line 9: rules.custom[1].match: takes too much"]


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("request.operation == 'CREATE'", True),
        ("has(object.a) ?request.a : true", True),
        ("r'\\' + request.a", True),
        ("object.request == 1", False),
        ("object.?request == 1", False),
        ("'request' in object", False),
        ("object[\"request\"] == '''request''' // request", False),
        ("requests == 1", False),
    ],
)
def test_variable_that_an_expression_reads_is_recognised(source: str, reads: bool) -> None:
    assert mentions(source, "request") is reads


def test_number_of_rules_is_limited_per_document_but_not_in_total() -> None:
    def numbered(first: int, count: int) -> list[dict[str, Any]]:
        return [rule("true", id=f"r{number}") for number in range(first, first + count)]

    with pytest.raises(PolicyError, match=r"rules.custom: has 101 rules, the maximum is 100"):
        policy(*numbered(0, 101))
    both = PolicySet(
        [
            Layer("below", read(document(*numbered(0, 60)), policy_model())),
            Layer("above", read(document(*numbered(60, 60), priority=1, mode="warn"), policy_model())),
        ]
    )
    merged = both.merged((0, 1))
    assert (len(merged.document.custom_rules), merged.document.mode, merged.dropped) == (120, "warn", ())
