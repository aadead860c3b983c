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
def test_value_of_the_policy_with_the_highest_priority_is_used(order: tuple[Layer, ...]) -> None:
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


def test_policy_without_documents_has_the_defaults() -> None:
    policy = PolicySet().for_namespace(UNKNOWN)
    assert policy.document == policy_model()()
    assert policy.sources == {}


def test_policies_of_equal_priority_are_sorted_by_name_and_their_conflicts_are_reported() -> None:
    one, two = layer("a", "rules: {gpus: {max: 1}}"), layer("b", "mode: warn\nrules: {gpus: {max: 2, min: 1}}")
    assert setting(PolicySet([two, one]), "gpus", "max") == 2
    assert layers.ties([two, one]) == [("a", "b", "rules.gpus.max")]
    assert layers.ties([one, layer("c", "priority: 1\nrules: {gpus: {max: 2}}")]) == []
    assert layers.ties([one, layer("d", "rules: {gpus: {max: 1}}")]) == []


def test_lists_are_replaced_and_exemptions_are_combined() -> None:
    one = layer(
        "a", "rules: {images: {allowedRegistries: [a.io]}}\nexemptions: [{rules: [gpus], users: [u], reason: r}]"
    )
    two = layer(
        "b", "rules: {images: {allowedRegistries: [b.io]}}\nexemptions: [{rules: ['*'], users: [v], reason: s}]"
    )
    policy = PolicySet([one, two]).for_namespace(ABSENT)
    assert policy.document.settings_of_rule("images").model_dump(by_alias=True)["allowedRegistries"] == ("b.io",)
    assert [exemption.users for exemption in policy.document.exemptions] == [("u",), ("v",)]


def test_list_of_allowed_injections_comes_from_the_policy_with_the_highest_priority() -> None:
    one, two = layer("a", "injectOnly: [labels, istio]"), layer("b", "priority: 1\ninjectOnly: [labels]")
    reset = layer("c", "priority: 2\ninjectOnly: null")
    policy = PolicySet([one, two]).for_namespace(ABSENT)
    assert [injection.id for injection, _ in policy.injections] == ["labels"]
    assert policy.sources == {"injectOnly": "b"}
    assert layers.ties([layer("c", "injectOnly: []"), one]) == [("a", "c", "injectOnly")]
    assert PolicySet([one, two, reset]).for_namespace(ABSENT).injections == PolicySet().for_namespace(ABSENT).injections


def test_later_document_that_contradicts_an_earlier_one_is_dropped() -> None:
    low, high = layer("low", "rules: {gpus: {max: 2}}"), layer("high", "priority: 1\nrules: {gpus: {min: 3}}")
    outcome = layers.merge([low, high], policy_model())
    assert outcome.dropped == (("high", "min (3) is above max (2)"),)
    assert outcome.document.settings_of_rule("gpus").model_dump()["min"] == 0
    assert outcome.sources == {"rules.gpus.max": "low"}


@pytest.mark.parametrize("answer", [ABSENT, UNKNOWN])
@pytest.mark.parametrize("text", ["mode: audit", "rules: {worker-count: {max: 64, action: warn}}"])
def test_document_with_a_selector_is_ignored_if_labels_are_unknown(answer: Answer, text: str) -> None:
    selective = layer("some", f"priority: 10\nnamespaces: {{matchLabels: {{a: b}}}}\n{text}")
    policy = PolicySet([BASE, selective]).for_namespace(answer)
    assert policy.action("worker-count") is Action.DENY
    assert policy.document.settings_of_rule("worker-count").model_dump()["max"] == 8
    assert policy.layers == (BASE,)
