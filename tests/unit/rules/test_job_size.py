"""The rule `job-size`: the maximum number of bytes of a job."""

import pytest
from pydantic import ValidationError

from tests.support.rule_checks import violations
from webhook.api.limits import MAX_OBJECT_BYTES
from webhook.rules import CauseReason, Violation
from webhook.rules.job_size import RULE, Settings

ARGS = "Worker.template.spec.containers.0.args"


def test_job_within_the_limit_is_accepted() -> None:
    assert not violations(RULE, {ARGS: ["x" * 1_000_000]})


def test_job_above_the_limit_is_rejected_with_its_size() -> None:
    (violation,) = violations(RULE, {ARGS: ["x" * 1024 * 1024]})
    size = violation.message.split()[2]
    assert violation == Violation(
        "spec",
        f"too large: {size} bytes, at most 1,048,576",
        fix="Stay within that, or ask your administrator about maxBytes of the rule job-size.",
        reason=CauseReason.NOT_SUPPORTED,
    )


def test_a_policy_may_lower_the_limit() -> None:
    assert violations(RULE, settings={"maxBytes": 100})


def test_policy_cannot_raise_the_limit_above_the_fixed_maximum() -> None:
    assert Settings.model_validate({"maxBytes": MAX_OBJECT_BYTES})
    with pytest.raises(ValidationError):
        Settings.model_validate({"maxBytes": MAX_OBJECT_BYTES + 1})
