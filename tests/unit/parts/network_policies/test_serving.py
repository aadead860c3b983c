"""Without the option, a policy that asks for NetworkPolicies is a concern."""

import pytest

from tests.support.policies import layer
from webhook.parts.network_policies.serving import not_made
from webhook.policy.in_force import PolicySet


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        ([], False),
        (["rules: {gpus: {action: warn}}"], False),
        (["rules: {network-policy: {posture: none, choices: [isolated]}}"], True),
        (["rules: {network-policy: {choices: [none]}}"], False),
        (["rules: {network-policy: {action: deny}}", "rules: {network-policy: {posture: isolated}}"], True),
        (["namespaces: {matchLabels: {a: b}}\nrules: {network-policy: {posture: default}}"], True),
    ],
)
def test_posture_without_its_controller_is_reported(documents: list[str], told: bool) -> None:
    policies = PolicySet([layer(str(number), text) for number, text in enumerate(documents)])
    assert ("network-policies" in not_made(policies)) is told
