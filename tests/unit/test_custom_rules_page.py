"""The examples in docs/custom-rules.md are valid policies."""

import re

import pytest

from tests.support.paths import DOCS
from webhook.cel.trial import Trial, try_expressions
from webhook.policy import custom_rules_check
from webhook.policy.in_force import policy_model
from webhook.policy.store import read

EXAMPLES = re.findall(r"```yaml\n(.*?)```", (DOCS / "custom-rules.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_can_be_evaluated(text: str) -> None:
    document = read(text, policy_model())
    outcomes = try_expressions(Trial(custom_rules_check.sources(document), document.params))
    assert custom_rules_check.check(document, text, outcomes) == ((), ())
