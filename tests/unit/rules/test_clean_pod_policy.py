from typing import Any

import pytest

from tests.support.jobs import REMOVE
from tests.support.rule_checks import as_texts, violations

ID = "clean-pod-policy"
REFUSED = 'spec.runPolicy.cleanPodPolicy: "None" is not allowed here (the default is "None")'


@pytest.mark.parametrize(
    ("value", "allowed", "expected"),
    [
        ("Running", None, []),
        ("None", None, []),
        (REMOVE, None, []),
        ("None", ["Running", "All"], [REFUSED]),
        (REMOVE, ["Running", "All"], [REFUSED]),  # the operator's default is "None"
        ("All", ["Running", "All"], []),
        ("nonsense", ["Running"], []),  # the rule `upstream-contract` reports this
    ],
)
def test_clean_pod_policy_that_is_not_allowed_is_rejected(
    value: Any, allowed: list[str] | None, expected: list[str]
) -> None:
    settings = {"allowed": allowed} if allowed else {}
    result = violations(ID, {"spec.runPolicy.cleanPodPolicy": value}, settings=settings)
    assert as_texts(result) == expected
    assert all(violation.fix == "Use one of Running, All." for violation in result)
