"""Custom rules in policy documents: syntax, merging, the trial, and their effects."""

import re
from datetime import date
from typing import Any

import msgspec
import pytest

from tests.support.jobs import changed, request
from tests.support.own_rules import document, policy, rule
from webhook.admission import pipelines
from webhook.admission.decision import Decision
from webhook.api.review import UserInfo
from webhook.cel import limits
from webhook.cel.trial import Trial, try_expressions
from webhook.cluster.view import NothingKnown
from webhook.kit.custom_rules import Outcome
from webhook.policy import custom_rules_check
from webhook.policy.custom_rules import mentions
from webhook.policy.document import PolicyError
from webhook.policy.in_force import PolicySet, load_policy, policy_model
from webhook.policy.layers import Layer
from webhook.policy.store import read

SLOTS = "object.spec.slotsPerWorker == 1"


def decide(found: Any, job: Any = None, old: Any = None, **about: Any) -> Decision:
    review = request(job or changed(), old=old, **about)
    return pipelines.validate(review, policy=found, view=NothingKnown(), today=TODAY)


TODAY = date(2026, 3, 2)


def said(decision: Decision) -> list[str]:
    return [f"{each.violation.path}: {each.sentence}" for each in decision.denied]


def test_a_job_of_which_it_is_not_true_is_refused_in_the_rules_words() -> None:
    found = decide(
        policy(rule(SLOTS, message="One slot each.", fix="Set slotsPerWorker to 1.", field="spec.slotsPerWorker"))
    )
    assert said(found) == ["spec.slotsPerWorker: One slot each. Set slotsPerWorker to 1. [custom/mine]"]


def test_without_a_fix_the_expression_is_shown() -> None:
    assert said(decide(policy(rule(SLOTS)))) == [f"spec: not like this. This must be true: {SLOTS} [custom/mine]"]


@pytest.mark.parametrize(("action", "where"), [("warn", "warned"), ("audit", "audited")])
def test_the_action_is_that_of_any_rule(action: str, where: str) -> None:
    found = decide(policy(rule(SLOTS, action=action)))
    assert found.allowed
    assert "custom/mine" in [each.rule for each in getattr(found, where)]
    assert decide(policy(rule(SLOTS), mode="warn")).allowed


def test_no_query_for_a_rule_that_is_off() -> None:
    pipelines.validate(request(changed()), policy=policy(rule(SLOTS, action="off")), view=NothingKnown(), today=TODAY)


def test_a_rule_without_a_value_rejects_no_job_and_is_reported() -> None:
    found = decide(policy(rule("object.spec.nothing == 1")))
    assert found.allowed
    fault = {"custom/mine": 'Key not found in map : "nothing"'}
    assert found.rule_faults == fault
    assert found.response("1").audit_annotations["rule-faults"] == f"custom/mine: {fault['custom/mine']}"


def test_rule_without_a_value_rejects_with_on_error_deny() -> None:
    found = decide(policy(rule("object.spec.nothing == 1", onError="deny")))
    assert said(found) == [
        'spec: the rule could not be evaluated (Key not found in map : "nothing").'
        " Ask your administrator: the policy rejects such jobs. [custom/mine]"
    ]


@pytest.mark.parametrize("on_error", ["skip", "deny"])
def test_a_job_too_large_for_custom_rules_is_rejected_whatever_is_done_on_errors(on_error: str) -> None:
    """Otherwise a user could switch the rule off by adding meaningless variables."""
    variables = [{"name": f"V{number}", "value": ""} for number in range(limits.MAX_JOB_VALUES // 3)]
    large = changed({"Worker.template.spec.containers.0.env": variables})
    found = policy(rule("true", onError=on_error))
    decision = decide(found, large)
    (denied,) = [each for each in decision.denied if each.rule == "custom/mine"]
    assert re.sub(r"1,\d{3} values", "N values", denied.violation.message) == (
        "too large for custom rules: N values, the maximum is 1,000"
    )
    assert not decision.rule_faults, "it is no fault of the policy"
    kept = decide(found, changed({"metadata.annotations": {"a": "b"}}, large), old=large)
    assert "custom/mine" not in {each.rule for each in kept.denied}


def test_what_is_unknown_of_the_namespace_rejects_no_job() -> None:
    found = decide(policy(rule("namespaceObject.metadata.labels.tier == 'x'", onError="deny")))
    assert found.allowed
    assert found.rule_faults == {}


def test_rule_about_users_rejects_no_job_without_a_user() -> None:
    found = policy(rule("request.userInfo.username == 'alice'", onError="deny"))
    assert not decide(found, username="bob").allowed
    unknown = decide(found, username="")
    assert unknown.allowed
    assert not unknown.rule_faults


def test_params_and_facts() -> None:
    written = rule("job.totalGpus <= params.most && job.accelerator == 'nvidia.com/gpu'")
    assert decide(policy(written, params={"most": 8})).allowed
    assert not decide(policy(written, params={"most": 7})).allowed


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
def test_facts(fact: str) -> None:
    job = changed(
        {
            "spec.slotsPerWorker": 2,
            "metadata.labels": {"kueue.x-k8s.io/queue-name": "large"},
            "Launcher.template.spec.containers.0.image": "registry.example.com/a:1",
            "Worker.template.spec.containers.0.image": "registry.example.com/b:1",
            "Worker.template.spec.containers.0.resources": {"limits": {"cpu": 1, "amd.com/gpu": 2}},
        }
    )
    kept, broken = (decide(policy(rule(source)), job) for source in (fact, f"!({fact})"))
    assert "custom/mine" not in {finding.rule for finding in kept.denied}
    assert not kept.rule_faults
    assert "custom/mine" in {finding.rule for finding in broken.denied}


def test_an_update_is_refused_for_what_it_makes_worse() -> None:
    found = policy(rule(SLOTS))
    assert decide(found, changed({"metadata.labels": {"a": "b"}}), old=changed()).allowed
    assert not decide(found, changed(), old=changed({"spec.slotsPerWorker": 1})).allowed


def test_the_stored_job_is_judged_by_facts_of_its_own() -> None:
    """Otherwise a job of 16 GPUs could be changed to one of 32."""
    few = policy(rule("job.workers <= 2"))
    assert not decide(few, changed({"Worker.replicas": 4}), old=changed({"Worker.replicas": 2})).allowed
    assert decide(few, changed({"Worker.replicas": 4}), old=changed({"Worker.replicas": 3})).allowed


def test_a_rule_about_the_change_always_counts() -> None:
    only_admins = policy(rule("request.operation == 'CREATE' || request.userInfo.username == 'admin'"))
    assert not decide(only_admins, changed({"spec.runPolicy.backoffLimit": 3}), old=changed()).allowed
    grows = policy(rule("oldObject == null || object.spec.slotsPerWorker >= oldObject.spec.slotsPerWorker"))
    assert decide(grows, changed(), old=changed()).allowed
    assert not decide(grows, changed({"spec.slotsPerWorker": 1}), old=changed()).allowed


@pytest.mark.parametrize("rules", [["custom/mine"], ["custom"], ["*"]])
def test_exemptions_name_one_or_all(rules: list[str]) -> None:
    exemption = {"rules": rules, "users": ["alice"], "reason": "agreed"}
    found = policy(rule("false"), exemptions=[exemption])
    review = msgspec.structs.replace(request(changed()), user_info=UserInfo("alice"))
    decision = pipelines.validate(review, policy=found, view=NothingKnown(), today=TODAY)
    assert decision.allowed
    assert "custom/mine" in [each.rule for each, _ in decision.exempted]


def test_documents_add_up_and_the_higher_has_its_say() -> None:
    low = read(document(rule("true", id="a"), rule("true", id="b"), params={"x": 1, "y": 1}), policy_model())
    high = read(
        document(rule("false", id="b"), {"id": "c", "action": "off"}, params={"y": 2}, priority=5), policy_model()
    )
    merged = PolicySet([Layer("low", low), Layer("high", high)]).merged([0, 1])
    assert [(each.id, each.expression) for each in merged.document.own_rules] == [
        ("a", "true"),
        ("b", "false"),
        ("c", None),
    ]
    assert merged.document.params == {"x": 1, "y": 2}
    assert merged.sources["rules.custom[b]"] == "high"
    assert merged.sources["params.x"] == "low"


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({"id": "a"}, "rules.custom[0]: has no expression: only a rule with action off needs none"),
        ({"id": "a", "expression": "true"}, "rules.custom[0]: has no message: only a rule with action off needs none"),
        (rule("true", id="A"), 'rules.custom[0].id: contains "A"; allowed are lower case letters, digits and "-"'),
        (rule("t" * 2001), "rules.custom[0].expression: has 2,001 characters, the maximum is 2,000"),
        (rule(" "), "rules.custom[0].expression: must not be empty"),
        (rule("true", onError="warn"), "rules.custom[0].onError: must be skip or deny"),
    ],
)
def test_what_is_written_wrong_is_reported_with_its_field(written: dict[str, Any], fault: str) -> None:
    with pytest.raises(PolicyError) as error:
        load_policy(document(written))
    assert fault in str(error.value)


def test_two_of_one_name() -> None:
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


def test_a_policy_is_tried_before_it_is_in_force() -> None:
    found = read(YAML, policy_model())
    sources = custom_rules_check.sources(found)
    checked = custom_rules_check.check(found, YAML, try_expressions(Trial(sources, found.params)))
    assert [*map(str, checked.faults)] == [
        "line 9: rules.custom[1].match: is of the type string here",
        "line 10: rules.custom[1].expression: column 3: found no matching overload for '_+_' applied to"
        " '(int, string)'",
    ]
    assert checked.notes == (
        'rules.custom[2].expression: no value for a usual job, such a job is admitted: Key not found in map : "team"',
    )


def test_a_trial_that_was_ended_rejects_the_policy_for_that_expression() -> None:
    outcomes = [Outcome(), Outcome(fault="takes too much", written_wrong=True)]
    checked = custom_rules_check.check(read(YAML, policy_model()), YAML, outcomes)
    assert [*map(str, checked.faults)] == ["line 9: rules.custom[1].match: takes too much"]


@pytest.mark.parametrize(
    ("source", "found"),
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
def test_which_variables_an_expression_reads(source: str, found: bool) -> None:
    assert mentions(source, "request") is found


def test_so_many_of_one_document_and_any_number_of_all_together() -> None:
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
    assert (len(merged.document.own_rules), merged.document.mode, merged.dropped) == (120, "warn", ())
