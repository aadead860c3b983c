"""Functions that rules use for the messages of violations."""

import pytest

from webhook.rules import CauseReason, Violation, not_allowed, shortened


def test_violation_for_a_value_that_is_not_allowed_names_the_allowed_values() -> None:
    assert not_allowed("spec.colour", "red", ("green", "blue"), default="green") == Violation(
        "spec.colour",
        '"red" is not allowed here (the default is "green")',
        fix="Use one of green, blue.",
        reason=CauseReason.NOT_SUPPORTED,
    )


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("a" * 8, "a" * 8), ("a" * 9, "aaaaa...")])
def test_long_text_is_shortened(text: str, shown: str) -> None:
    assert shortened(text, 8) == shown
