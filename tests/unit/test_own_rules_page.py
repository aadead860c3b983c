"""The examples of docs/own-rules.md are good policies."""

import re

import pytest

from tests.support.paths import DOCS
from webhook.cel import at_once
from webhook.policy import own_rules_check
from webhook.policy.in_force import policy_model
from webhook.policy.store import read

EXAMPLES = re.findall(r"```yaml\n(.*?)```", (DOCS / "own-rules.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_can_be_evaluated(text: str) -> None:
    assert own_rules_check.check(read(text, policy_model()), text, at_once.evaluate) == ((), ())
