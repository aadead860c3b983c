from itertools import permutations

import pytest

from tests.support.policies import layer
from webhook.cluster.resources.namespaces import Namespace
from webhook.cluster.view import ABSENT, UNKNOWN, Answer
from webhook.kit.settings import Action
from webhook.policy import layers
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.layers import Layer


def setting(policy_set: PolicySet, rule: str, name: str, labels: dict[str, str] | None = None) -> object:
    policy = policy_set.for_namespace(Namespace("ns", labels or {}))
    return policy.document.settings_of_rule(rule).model_dump(by_alias=True)[name]


BASE = layer("base", "rules: {worker-count: {max: 8}, gpus: {max: 4}}")
PREMIUM = layer(
    "premium",
    "priority: 10\nnamespaces: {matchLabels: {tier: premium}}\nrules: {worker-count: {max: 64, action: warn}}",
)


@pytest.mark.parametrize("order", list(permutations([BASE, PREMIUM])))
def test_the_higher_priority_wins_value_by_value(order: tuple[Layer, ...]) -> None:
    policies = PolicySet(order)
    premium = policies.for_namespace(Namespace("ns", {"tier": "premium"}))
    count = premium.document.settings_of_rule("worker-count")
    assert count.model_dump() == {"action": "warn", "min": 2, "max": 64}
    assert premium.document.settings_of_rule("gpus").model_dump()["max"] == 4
    assert premium.sources == {
        "rules.worker-count.max": "premium",
        "rules.worker-count.action": "premium",
        "rules.gpus.max": "base",
    }
    assert setting(policies, "worker-count", "max") == 8


def test_without_documents_the_defaults_hold() -> None:
    policy = PolicySet().for_namespace(UNKNOWN)
    assert policy.document == policy_model()()
    assert policy.sources == {}


def test_equal_priorities_go_by_name_and_are_reported() -> None:
    one, two = layer("a", "rules: {gpus: {max: 1}}"), layer("b", "mode: warn\nrules: {gpus: {max: 2, min: 1}}")
    assert setting(PolicySet([two, one]), "gpus", "max") == 2
    assert layers.ties([two, one]) == [("a", "b", "rules.gpus.max")]
    assert layers.ties([one, layer("c", "priority: 1\nrules: {gpus: {max: 2}}")]) == []
    assert layers.ties([one, layer("d", "rules: {gpus: {max: 1}}")]) == []


def test_a_list_is_one_value_and_exemptions_add_up() -> None:
    one = layer(
        "a", "rules: {images: {allowedRegistries: [a.io]}}\nexemptions: [{rules: [gpus], users: [u], reason: r}]"
    )
    two = layer(
        "b", "rules: {images: {allowedRegistries: [b.io]}}\nexemptions: [{rules: ['*'], users: [v], reason: s}]"
    )
    policy = PolicySet([one, two]).for_namespace(ABSENT)
    assert policy.document.settings_of_rule("images").model_dump(by_alias=True)["allowedRegistries"] == ("b.io",)
    assert [exemption.users for exemption in policy.document.exemptions] == [("u",), ("v",)]


def test_the_ceiling_on_injections_is_one_value() -> None:
    one, two = layer("a", "injectOnly: [labels, istio]"), layer("b", "priority: 1\ninjectOnly: [labels]")
    back = layer("c", "priority: 2\ninjectOnly: null")
    found = PolicySet([one, two]).for_namespace(ABSENT)
    assert [injection.id for injection, _ in found.injections] == ["labels"]
    assert found.sources == {"injectOnly": "b"}
    assert layers.ties([layer("c", "injectOnly: []"), one]) == [("a", "c", "injectOnly")]
    assert PolicySet([one, two, back]).for_namespace(ABSENT).injections == PolicySet().for_namespace(ABSENT).injections


def test_documents_that_do_not_go_together() -> None:
    low, high = layer("low", "rules: {gpus: {max: 2}}"), layer("high", "priority: 1\nrules: {gpus: {min: 3}}")
    outcome = layers.merge([low, high], policy_model())
    assert outcome.dropped == (("high", "min (3) is above max (2)"),)
    assert outcome.document.settings_of_rule("gpus").model_dump()["min"] == 0
    assert outcome.sources == {"rules.gpus.max": "low"}


@pytest.mark.parametrize("answer", [ABSENT, UNKNOWN])
@pytest.mark.parametrize("text", ["mode: audit", "rules: {worker-count: {max: 64, action: warn}}"])
def test_without_labels_only_documents_without_a_selector_count(answer: Answer, text: str) -> None:
    """A document for another namespace weakened all rules of this one."""
    selective = layer("some", f"priority: 10\nnamespaces: {{matchLabels: {{a: b}}}}\n{text}")
    policy = PolicySet([BASE, selective]).for_namespace(answer)
    assert policy.action("worker-count") is Action.DENY
    assert policy.document.settings_of_rule("worker-count").model_dump()["max"] == 8
    assert policy.layers == (BASE,)
