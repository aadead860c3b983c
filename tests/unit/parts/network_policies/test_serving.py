"""A policy that requires NetworkPolicies is reported if the option --network-policies is off.

A posture is a degree of isolation. A policy sets the posture of jobs, and lists the postures that jobs may choose.
Every posture except `none` requires a NetworkPolicy.
"""

import pytest

from tests.support.policies import layer
from webhook.parts.network_policies.serving import not_made
from webhook.policy.in_force import PolicySet


@pytest.mark.parametrize(
    ("documents", "reported"),
    [
        ([], False),
        (["rules: {gpus: {action: warn}}"], False),
        (["rules: {network-policy: {posture: none, choices: [isolated]}}"], True),
        (["rules: {network-policy: {choices: [none]}}"], False),
        (["rules: {network-policy: {action: deny}}", "rules: {network-policy: {posture: isolated}}"], True),
        (["namespaces: {matchLabels: {a: b}}\nrules: {network-policy: {posture: default}}"], True),
    ],
)
def test_posture_that_requires_a_network_policy_is_reported_if_the_option_is_off(
    documents: list[str], reported: bool
) -> None:
    policies = PolicySet([layer(str(number), text) for number, text in enumerate(documents)])
    assert ("network-policies" in not_made(policies)) is reported
