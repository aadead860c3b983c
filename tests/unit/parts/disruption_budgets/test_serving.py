"""A policy that sets a disruption budget is reported if the option --disruption-budgets is off."""

import pytest

from tests.support.policies import layer
from webhook.parts.disruption_budgets.serving import not_made
from webhook.policy.in_force import PolicySet


@pytest.mark.parametrize(
    ("document", "reported"),
    [
        ("injections: {no-disruption: {enabled: true}}", False),
        ("namespaces: {matchLabels: {a: b}}\ninjections: {no-disruption: {budget: true}}", True),
    ],
)
def test_budget_without_the_option_is_reported(document: str, reported: bool) -> None:
    assert ("disruption-budgets" in not_made(PolicySet([layer("p", document)]))) is reported
