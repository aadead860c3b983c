"""A policy that requires NetworkPolicies is a concern if the option --network-policies is off.

A policy requires them by its posture: a degree of isolation that jobs have, or may choose. Only `none` needs no object.
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
def test_posture_that_needs_an_object_is_reported_if_the_option_is_off(documents: list[str], reported: bool) -> None:
    policies = PolicySet([layer(str(number), text) for number, text in enumerate(documents)])
    assert ("network-policies" in not_made(policies)) is reported
